// Chats over HTTP: the texts, log-probabilities and errors of completions in OpenAI's other spelling, whole and
// streamed.
#include "server/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/folder_testing.h"
#include "multimodal/multimodal_testing.h"
#include "server/completions.h"
#include "server/served_model_testing.h"
#include "server/transcription_testing.h"

namespace transept {
namespace {

using testing::at;
using ::testing::HasSubstr;
using testing::ServedModel;

constexpr std::string_view kRoute = "/v1/chat/completions";

std::string user(std::string_view content) {
  return str_cat(R"("messages": [{"role": "user", "content": )", content, "}]");
}
std::string said(std::string_view text) { return user(str_cat("\"", text, "\"")); }

class Chats : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    served_ = std::make_unique<ServedModel>();
    served_->load();
  }
  static void TearDownTestSuite() { served_.reset(); }

  static Json answer(std::string_view path, std::string_view body) {
    const HttpClient::Reply reply = served_->post(path, body);
    EXPECT_EQ(reply.status, 200) << body << reply.body;
    return ServedModel::json(reply);
  }
  static Json chat(std::string_view fields) { return answer(kRoute, str_cat("{", fields, "}")); }
  static Json error(std::string_view fields, int status = 400) {
    const HttpClient::Reply reply = served_->post(kRoute, str_cat("{", fields, "}"));
    EXPECT_EQ(reply.status, status) << fields << reply.body;
    return at(ServedModel::json(reply), "error");
  }
  static std::string param(std::string_view fields) { return at(error(fields), "param").dump(); }
  static std::vector<Json> stream(std::string_view fields) {
    std::vector<Json> chunks;
    SseReader reader;
    bool is_done = false;
    const auto take = [&](std::string_view, std::string_view data) {
      EXPECT_FALSE(is_done);
      is_done = data == "[DONE]";
      if (!is_done) chunks.push_back(Json::parse(data).value());
    };
    const auto reply =
        served_->client().post_streamed(kRoute, "application/json", str_cat("{", fields, ", \"stream\": true}"),
                                        [&](std::string_view piece) { return reader.push(piece, take); });
    EXPECT_TRUE(reply.ok() && reply->status == 200) << fields;
    EXPECT_TRUE(is_done);
    return chunks;
  }

  static std::unique_ptr<ServedModel> served_;
};
std::unique_ptr<ServedModel> Chats::served_;

TEST_F(Chats, AnswersWithOpenAisKeys) {
  const Json body = chat(str_cat(said("hello"), R"(, "model": "g2p")"));
  EXPECT_EQ(at(body, "object").as_string(), "chat.completion");
  EXPECT_EQ(at(body, "model").as_string(), "g2p");
  EXPECT_TRUE(at(body, "id").as_string().starts_with("chatcmpl-"));
  EXPECT_TRUE(at(body, "created").is_int());
  const Json& choice = at(body, "choices", 0);
  EXPECT_EQ(at(choice, "index").as_int(), 0);
  EXPECT_EQ(at(choice, "message", "role").as_string(), "assistant");
  EXPECT_FALSE(at(choice, "message", "content").as_string().empty());
  ASSERT_NE(at(choice, "message").find("refusal"), nullptr);
  EXPECT_TRUE(at(choice, "message", "refusal").is_null());
  EXPECT_EQ(at(choice, "message").as_object().size(), 3u);
  EXPECT_EQ(at(choice, "finish_reason").as_string(), "stop");
  ASSERT_NE(choice.find("logprobs"), nullptr);
  EXPECT_TRUE(at(choice, "logprobs").is_null());
  EXPECT_EQ(choice.find("text"), nullptr);
  EXPECT_EQ(at(body, "usage", "prompt_tokens_details", "encoder_tokens").as_int(), 7);  // <s> h e l l o </s>
  EXPECT_EQ(at(body, "usage", "prompt_tokens").as_int(), 9);
}

// Of each way to ask: the same texts, reasons, log-probabilities and usage.
TEST_F(Chats, TextsAreThoseOfCompletions) {
  for (const char* fields :
       {"", R"(, "n": 3, "temperature": 0.9, "seed": 5)", R"(, "num_beams": 4, "n": 2)", R"(, "stop": ["l"])",
        R"(, "max_tokens": 3)", R"(, "repetition_penalty": 1.7)", R"(, "add_special_tokens": false)",
        R"(, "truncate_prompt_tokens": 3)", R"(, "logit_bias": {"120": -100}, "bad_words": ["l"])",
        R"(, "return_alignments": true)"}) {
    const Json plain =
        answer("/v1/completions", str_cat(R"({"prompt": "encyclopedia")", fields, R"(, "logprobs": 2})"));
    const Json chatted = chat(str_cat(said("encyclopedia"), fields, R"(, "logprobs": true, "top_logprobs": 2)"));
    const size_t count = at(plain, "choices").as_array().size();
    ASSERT_EQ(at(chatted, "choices").as_array().size(), count) << fields;
    EXPECT_EQ(at(chatted, "usage").dump(), at(plain, "usage").dump()) << fields;
    for (int i = 0; i < static_cast<int>(count); ++i) {
      const Json &a = at(plain, "choices", i), &b = at(chatted, "choices", i);
      EXPECT_EQ(at(b, "message", "content").dump(), at(a, "text").dump()) << fields;
      for (const char* key : {"index", "finish_reason", "stop_reason", "alignments"}) {
        EXPECT_EQ(at(b, key).dump(), at(a, key).dump()) << fields << key;
      }
      const Json::Array& content = at(b, "logprobs", "content").as_array();
      ASSERT_EQ(content.size(), at(a, "logprobs", "tokens").as_array().size()) << fields;
      for (int k = 0; k < static_cast<int>(content.size()); ++k) {
        const Json& token = content[static_cast<size_t>(k)];
        EXPECT_EQ(at(token, "token").dump(), at(a, "logprobs", "tokens", k).dump());
        EXPECT_EQ(at(token, "logprob").dump(), at(a, "logprobs", "token_logprobs", k).dump());
        for (const Json& top : at(token, "top_logprobs").as_array()) {
          const Json* other = at(a, "logprobs", "top_logprobs", k).find(at(top, "token").as_string());
          ASSERT_NE(other, nullptr);
          EXPECT_EQ(at(top, "logprob").dump(), other->dump());
        }
      }
    }
  }
}

TEST_F(Chats, TheBytesOfAllTokensAreTheText) {
  const Json choice = at(chat(str_cat(said("hello"), R"(, "logprobs": true)")), "choices", 0);
  std::string bytes;
  for (const Json& token : at(choice, "logprobs", "content").as_array()) {
    for (const Json& byte : at(token, "bytes").as_array()) bytes += static_cast<char>(byte.as_int());
  }
  EXPECT_EQ(bytes, at(choice, "message", "content").as_string() + "</s>");
}

TEST_F(Chats, LogprobsHaveAsManyBestTokensAsWereAskedFor) {
  for (const int num_top : {0, 1, 5}) {
    // Drawn tokens: the chosen one is often none of the best.
    const Json body =
        chat(str_cat(said("hello"), R"(, "temperature": 2, "seed": 3, "max_tokens": 12, "ignore_eos": true,
        "logprobs": true, "top_logprobs": )",
                     num_top));
    const Json& logprobs = at(body, "choices", 0, "logprobs");
    ASSERT_NE(logprobs.find("refusal"), nullptr);
    EXPECT_TRUE(at(logprobs, "refusal").is_null());
    ASSERT_EQ(at(logprobs, "content").as_array().size(), 12u);
    for (const Json& token : at(logprobs, "content").as_array()) {
      const Json::Array& top = at(token, "top_logprobs").as_array();
      ASSERT_EQ(top.size(), static_cast<size_t>(num_top));
      for (size_t i = 1; i < top.size(); ++i) {
        EXPECT_GE(at(top[i - 1], "logprob").as_double(), at(top[i], "logprob").as_double());
      }
      if (num_top > 0) {
        EXPECT_GE(at(top[0], "logprob").as_double(), at(token, "logprob").as_double());
      }
    }
  }
  EXPECT_TRUE(at(chat(str_cat(said("a"), R"(, "logprobs": false)")), "choices", 0, "logprobs").is_null());
}

TEST_F(Chats, PartsAreATextAndDeveloperIsNoUser) {
  const std::string whole = at(chat(said("hello\\nworld")), "choices", 0, "message", "content").as_string();
  const Json parts = chat(user(R"([{"type": "text", "text": "hello"}, {"type": "text", "text": "world"}])"));
  EXPECT_EQ(at(parts, "choices", 0, "message", "content").as_string(), whole);
  for (const char* role : {"system", "developer", "assistant"}) {
    const Json refusal = error(str_cat(R"("messages": [{"role": ")", role, R"(", "content": "a"}])"));
    EXPECT_EQ(at(refusal, "param").as_string(), "messages[0]");
    EXPECT_THAT(at(refusal, "message").as_string(), HasSubstr("bart"));
  }
  EXPECT_EQ(param(R"("messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])"),
            R"("messages[1]")");
}

TEST_F(Chats, PiecesOfAStreamAreTheWhole) {
  for (const char* fields : {"", R"(, "n": 3, "temperature": 0.9, "seed": 1)", R"(, "stop": "l")",
                             R"(, "max_tokens": 2)", R"(, "prompt_logprobs": 1)"}) {
    const std::string request = str_cat(said("transformer"), fields, R"(, "logprobs": true, "top_logprobs": 1)");
    const Json whole = chat(request);
    const auto chunks = stream(str_cat(request, R"(, "stream_options": {"include_usage": true})"));
    ASSERT_GE(chunks.size(), 2u) << "a piece, which may be the whole, and the usage";
    std::map<int, std::string> texts, logprobs, reasons;
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      EXPECT_EQ(at(chunks[i], "object").as_string(), "chat.completion.chunk");
      EXPECT_EQ(at(chunks[i], "id").dump(), at(chunks[0], "id").dump());
      ASSERT_NE(chunks[i].find("usage"), nullptr);
      EXPECT_TRUE(at(chunks[i], "usage").is_null());
      const Json& choice = at(chunks[i], "choices", 0);
      const int index = static_cast<int>(at(choice, "index").as_int());
      EXPECT_EQ(at(choice, "delta", "role").is_string(), !texts.contains(index)) << "the first piece has the role";
      EXPECT_FALSE(reasons.contains(index)) << "a piece after the last";
      texts[index] += at(choice, "delta", "content").as_string();
      ASSERT_NE(choice.find("finish_reason"), nullptr);
      if (at(choice, "finish_reason").is_string()) reasons[index] = at(choice, "finish_reason").as_string();
      for (const Json& token : at(choice, "logprobs", "content").as_array()) logprobs[index] += token.dump();
    }
    const Json::Array& choices = at(whole, "choices").as_array();
    ASSERT_EQ(texts.size(), choices.size()) << fields;
    for (const auto& [index, text] : texts) {
      EXPECT_EQ(text, at(whole, "choices", index, "message", "content").as_string()) << fields;
      EXPECT_EQ(reasons[index], at(whole, "choices", index, "finish_reason").as_string()) << fields;
      std::string wanted;
      for (const Json& token : at(whole, "choices", index, "logprobs", "content").as_array()) wanted += token.dump();
      EXPECT_EQ(logprobs[index], wanted) << fields;
    }
    EXPECT_TRUE(at(chunks.back(), "choices").as_array().empty());
    EXPECT_EQ(at(chunks.back(), "object").as_string(), "chat.completion.chunk");
    EXPECT_EQ(at(chunks.back(), "usage").dump(), at(whole, "usage").dump()) << fields;
  }
  for (const Json& chunk : stream(said("hello"))) EXPECT_EQ(chunk.find("usage"), nullptr) << "it was not asked for";
}

TEST_F(Chats, ErrorsNameTheFieldsOfAChat) {
  EXPECT_EQ(param(R"("model": "g2p")"), R"("messages")");
  EXPECT_EQ(param(R"("messages": [])"), R"("messages")");
  EXPECT_EQ(param(str_cat(said("x"), R"(, "n": 17)")), R"("n")");
  EXPECT_EQ(param(str_cat(said("x"), R"(, "tools": [{}])")), R"("tools")");
  EXPECT_EQ(param(str_cat(said("x"), R"(, "stream": true, "num_beams": 2)")), R"("stream")");
  EXPECT_EQ(param(str_cat(said("x"), R"(, "stream_options": {"include_usage": true})")), R"("stream_options")");
  EXPECT_EQ(param(str_cat(said("x"), R"(, "max_tokens": 99999999)")), R"("max_tokens")");
  EXPECT_EQ(param(str_cat(said("x"), R"(, "max_completion_tokens": 99999999)")), R"("max_completion_tokens")");
  EXPECT_EQ(param(str_cat(said("x"), R"(, "encoded_inputs": [])")), R"("encoded_inputs")");
  EXPECT_EQ(param(said(std::string(5000, 'a'))), R"("messages[0].content")");
  EXPECT_EQ(at(error(str_cat(said("x"), R"(, "model": "other")"), 404), "param").as_string(), "model");
  // A stream that has not begun is an answer with a status, too.
  EXPECT_EQ(param(str_cat(said(std::string(5000, 'a')), R"(, "stream": true)")), R"("messages[0].content")");
}

TEST_F(Chats, AModelOfTextTakesNoMedia) {
  const std::string image = R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})";
  const Json refusal = error(user(str_cat("[", R"({"type": "text", "text": "a"}, )", image, "]")));
  EXPECT_EQ(at(refusal, "param").as_string(), "messages[0].content[1].image_url.url");
  EXPECT_THAT(at(refusal, "message").as_string(), HasSubstr("(bart) takes no image input"));
  EXPECT_EQ(param(user(str_cat("[", image, ", ", image, "]"))), R"("messages")");
  EXPECT_EQ(param(user(R"([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}])")),
            R"("messages[0].content[0].input_audio.data")");
  const Json url = error(user(R"([{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/a.png"}}])"));
  EXPECT_EQ(at(url, "param").as_string(), "messages[0].content[0].image_url.url");
  EXPECT_THAT(at(url, "message").as_string(), HasSubstr("URLs are not fetched: send a data: URL"));
}

// With the template of a folder or of --chat-template the model gets the rendered text, without further special tokens.
TEST(ChatTemplates, TheRenderedTextIsThePrompt) {
  ServedModel served;
  served.load([](LoadedModel& model) {
    const testing::TestFolder folder;
    folder.write(
        "chat_template.jinja",
        "{{ raise_exception('no poems') if messages[0].content == 'poem' }}<s>"
        "{% for m in messages %}{{ m.content if m.content is string else m.content[0].type }}{% endfor %}</s>");
    model.chat_prompts = ChatPrompts::load(folder.path(), ChatTemplateOwner::kTokenizer, "").value();
  });
  const auto post = [&](std::string_view path, std::string_view body) { return served.post(path, body); };
  const Json plain = ServedModel::json(post("/v1/completions", R"({"prompt": "helloworld", "logprobs": 1})"));
  const Json rendered = ServedModel::json(post(kRoute, R"({"messages": [{"role": "system", "content": "hello"},
      {"role": "user", "content": "world"}], "logprobs": true, "top_logprobs": 1})"));
  EXPECT_EQ(at(rendered, "choices", 0, "message", "content").dump(), at(plain, "choices", 0, "text").dump());
  EXPECT_EQ(at(rendered, "usage").dump(), at(plain, "usage").dump());
  const Json twice = ServedModel::json(
      post(kRoute, R"({"messages": [{"role": "user", "content": "helloworld"}], "add_special_tokens": true})"));
  EXPECT_EQ(at(twice, "usage", "prompt_tokens").as_int(), at(plain, "usage", "prompt_tokens").as_int() + 2);

  const HttpClient::Reply refused = post(kRoute, R"({"messages": [{"role": "user", "content": "poem"}]})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(at(ServedModel::json(refused), "error", "param").as_string(), "messages");
  EXPECT_THAT(at(ServedModel::json(refused), "error", "message").as_string(), HasSubstr("no poems"));
}

TEST(SpeechChats, AudioIsTheEncodersAndTextTheDecoders) {
  const auto house = testing::speech_house();
  const std::string sound = testing::base64_of(testing::wav(3, 2));
  const auto ask = [&](auto* handler, const std::string& body) {
    const auto client = std::make_shared<testing::Client>();
    const ApiCallPtr call = testing::make_call(house->context(), body, client);
    call->http.headers = {{"Content-Type", "application/json"}};
    handler(house->context(), call);
    for (int i = 0; i < 4000 && !client->has_ended(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(client->answer().status, 200) << client->answer().body;
    return client->json();
  };
  const std::string audio =
      str_cat(R"({"type": "input_audio", "input_audio": {"data": ")", sound, R"(", "format": "wav"}})");
  for (const char* text : {"", "Transept"}) {
    const std::string prompt = *text == '\0' ? "" : str_cat(R"("prompt": ")", text, "\", ");
    const Json plain =
        ask(&handle_completion, str_cat(R"({"prompt": {)", prompt, R"("multi_modal_data": {"audio": {"base64": ")",
                                        sound, R"("}}}, "language": "en"})"));
    const std::string part = *text == '\0' ? "" : str_cat(R"(, {"type": "text", "text": ")", text, "\"}");
    const Json chatted =
        ask(&handle_chat, str_cat("{", user(str_cat("[", audio, part, "]")), R"(, "language": "en"})"));
    EXPECT_EQ(at(chatted, "choices", 0, "message", "content").dump(), at(plain, "choices", 0, "text").dump());
    EXPECT_EQ(at(chatted, "usage").dump(), at(plain, "usage").dump());
    EXPECT_GT(at(chatted, "usage", "prompt_tokens_details", "audio_seconds").as_double(), 1.9);
  }
}

}  // namespace
}  // namespace transept
