// Pickles as data: what torch.save writes is read; everything else ends with opcode and offset, whatever it costs its
// author.
#include "weights/torch_pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "weights/torch_file_testing.h"

namespace transept {
namespace {

using Kind = PickleKind;
using ::testing::ElementsAre;
using testing::global;
using ::testing::HasSubstr;
using testing::number_bytes;
using testing::pickle_of;
using testing::pickled;
using ::testing::StartsWith;

StatusOr<TorchPickle> parse(const std::string& bytes) { return TorchPickle::parse(std::as_bytes(std::span(bytes))); }

// The error of a pickle of this value.
std::string why(const std::string& value) {
  const auto parsed = parse(pickle_of(value));
  return parsed.ok() ? "read" : error_message(parsed.status());
}

std::string repeated(std::string_view part, size_t count) {
  std::string out;
  out.reserve(part.size() * count);
  for (size_t i = 0; i < count; ++i) out += part;
  return out;
}

const testing::TestStorage kStorage = {"0", "FloatStorage", 12, {}};

TEST(TorchPickle, ReadsPlainValues) {
  const std::string bytes = pickle_of(
                                "(K\xff"
                                "M\xff\xff"
                                "J\xff\xff\xff\xff"
                                "\x8a\x01\x80" +
                                std::string("\x8a\0", 2) + "\x8a\x08" + number_bytes(int64_t{1} << 62) + "N\x88\x89X" +
                                number_bytes(uint32_t{2}) + "hi" + "G" + number_bytes(1.0) + "t") +
                            "behind";
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->num_bytes(), bytes.size() - 6);
  ASSERT_TRUE(parsed->root().is(Kind::kTuple));
  const auto items = parsed->items(parsed->root());
  ASSERT_EQ(items.size(), 11u);
  const int64_t numbers[] = {255, 65535, -1, -128, 0, int64_t{1} << 62};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(items[i].is(Kind::kInt));
    EXPECT_EQ(items[i].number(), numbers[i]);
  }
  EXPECT_TRUE(items[6].is(Kind::kNone));
  EXPECT_EQ(items[7].number(), 1);
  EXPECT_EQ(items[8].number(), 0);
  EXPECT_EQ(items[9].text(), "hi");
  EXPECT_TRUE(items[10].is(Kind::kFloat));
}

TEST(TorchPickle, ReadsDictsListsAndTheMemo) {
  const std::string memo0 = std::string("q\0", 2);
  const std::string bytes = pickle_of("}" + memo0 + "(" + pickled("a") + "q\x01" + "](K\x01K\x02" + "e" + "h\x01" +
                                      "K\x03u" + pickled("b") + "]K\x07" + "as");
  const auto dict = parse(bytes);
  ASSERT_TRUE(dict.ok()) << dict.status().message();
  const PickleValue* a = dict->find(dict->root(), "a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->number(), 3) << "the last value of a key holds";
  const PickleValue* b = dict->find(dict->root(), "b");
  ASSERT_TRUE(b != nullptr && b->is(Kind::kList));
  EXPECT_EQ(dict->items(*b)[0].number(), 7);
  EXPECT_EQ(dict->find(dict->root(), "c"), nullptr);
  EXPECT_EQ(dict->find(*b, "a"), nullptr) << "no dict";
}

TEST(TorchPickle, DescribesTensors) {
  const std::string bytes =
      pickle_of(testing::state_dict({{"w", 0, 4, {2, 3}, {1, 2}}, {"v", 0, 0, {}, {}}}, {kStorage}));
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const PickleValue* value = parsed->find(parsed->root(), "w");
  ASSERT_TRUE(value != nullptr && value->is(Kind::kTensor));
  const PickledTensor& w = parsed->tensor(*value);
  EXPECT_EQ(w.dtype, "F32");
  EXPECT_EQ(w.storage.key, "0");
  EXPECT_EQ(w.storage.num_elements, 12);
  EXPECT_EQ(w.offset, 4);
  EXPECT_THAT(w.shape, ElementsAre(2, 3));
  EXPECT_THAT(w.strides, ElementsAre(1, 2));
  EXPECT_EQ(parsed->storages().size(), 2u);
}

TEST(TorchPickle, UsesThePartOfALegacyStorage) {
  const auto id = [](int64_t begin, int64_t size) {
    return "(" + pickled("storage") + global("torch", "HalfStorage") + pickled("k") + pickled("cpu") + pickled(12) +
           "(" + pickled("v") + pickled(begin) + pickled(size) + "ttQ";
  };
  const auto parsed = parse(pickle_of(id(4, 8)));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->storages()[0].begin, 4);
  EXPECT_EQ(parsed->storages()[0].end, 12);
  EXPECT_THAT(why(id(4, 9)), HasSubstr("[4, +9) are not in a storage of 12"));
  EXPECT_THAT(why(id(-1, 2)), HasSubstr("are not in"));
  EXPECT_THAT(why(id(2, -1)), HasSubstr("are not in"));
}

TEST(TorchPickle, RunsNothing) {
  EXPECT_THAT(why(global("os", "system") + pickled("echo") + "\x85R"),
              StartsWith("GLOBAL at byte 2: \"os.system\" is not a name that weights need"));
  EXPECT_THAT(why(global("torch._utils", "_rebuild_sparse_tensor")),
              HasSubstr("_rebuild_sparse_tensor\" is not a name"));
  EXPECT_THAT(why(global("torch", "FloatStorage") + ")R"), HasSubstr("FloatStorage is not called"));
  EXPECT_THAT(why("K\x01)R"), StartsWith("REDUCE at byte 5: calls a value"));
  EXPECT_THAT(why(global("collections", "OrderedDict") + "K\x01R"), HasSubstr("not a tuple"));
  EXPECT_THAT(why(global("collections", "OrderedDict") + "K\x01\x85R"), HasSubstr("takes no arguments"));
  EXPECT_THAT(why("(ios\nsystem\n."), StartsWith("INST at byte 3: "));
  EXPECT_THAT(why(")\x81"), StartsWith("NEWOBJ at byte 3: "));
  EXPECT_THAT(why("(o"), StartsWith("OBJ at byte 3: "));
  EXPECT_THAT(why("\x8c\x02os\x8c\x06system\x93"), StartsWith("SHORT_BINUNICODE at byte 2: "));
  EXPECT_THAT(why("\x82\x01"), StartsWith("EXT1 at byte 2: "));
  EXPECT_THAT(why("}K\x01"
                  "b"),
              StartsWith("BUILD at byte 5: "));
  EXPECT_THAT(why(")}b"), HasSubstr("sets the state of what is no OrderedDict"));
  EXPECT_THAT(why("Pos\n"), StartsWith("PERSID at byte 2: "));
  EXPECT_THAT(why("\xfe"), StartsWith("opcode 254 at byte 2: "));
  EXPECT_EQ(why(global("collections", "OrderedDict") + ")R}" + pickled("_metadata") + "Nsb"), "read");
}

TEST(TorchPickle, RefusesWhatIsNoPickleOfItsOwn) {
  EXPECT_THAT(error_message(parse("").status()), HasSubstr("ends at byte 0 without STOP"));
  EXPECT_THAT(error_message(parse("\x80\x04N.").status()), HasSubstr("PROTO at byte 0: protocol 4, expected 2"));
  EXPECT_THAT(why(""), HasSubstr("STOP at byte 2: 0 values are left"));
  EXPECT_THAT(why("NN"), HasSubstr("2 values are left"));
  EXPECT_THAT(why("N("), HasSubstr("1 values are left"));
  EXPECT_THAT(why("\x86"), HasSubstr("TUPLE2 at byte 2: needs 2 values, there are 0"));
  EXPECT_THAT(why("N(\x85"), HasSubstr("there are 0")) << "a value below a mark is out of reach";
  EXPECT_THAT(why("t"), HasSubstr("there is no mark"));
  EXPECT_THAT(why("u"), HasSubstr("there is no mark"));
  EXPECT_THAT(why("](K\x01u"), HasSubstr("there is no dict"));
  EXPECT_THAT(why("}(K\x01u"), HasSubstr("a key has no value"));
  EXPECT_THAT(why("}K\x01"
                  "a"),
              HasSubstr("there is no list"));
  EXPECT_THAT(why("h\x05"), HasSubstr("memo 5 is empty"));
  EXPECT_THAT(why(std::string("Nq\x00h\x01", 5)), HasSubstr("memo 1 is empty")) << "the place behind the last";
  EXPECT_THAT(why("q\x05"), HasSubstr("there is no value"));
  EXPECT_THAT(why("Nr" + number_bytes(uint32_t{1'000'000})), HasSubstr("memo 1000000 is over the 1000000 allowed"));
  EXPECT_EQ(why("Nr" + number_bytes(uint32_t{999'999})), "read");
  EXPECT_THAT(why("X" + number_bytes(uint32_t{(1 << 20) + 1})), HasSubstr("a string of 1048577 bytes"));
  EXPECT_THAT(why("X" + number_bytes(uint32_t{5}) + "abc"), HasSubstr("BINUNICODE at byte 2: is cut off"));
  EXPECT_THAT(why("X" + number_bytes(uint32_t{1}) + "\xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(why("\x8a\x09" + std::string(9, '\1')), HasSubstr("a number of 9 bytes"));
  EXPECT_THAT(why("c" + std::string(300, 'a')), HasSubstr("no end within 200 bytes"));
}

TEST(TorchPickle, RefusesWrongTensors) {
  const std::string head = global("torch._utils", "_rebuild_tensor_v2") + "(",
                    id = testing::storage_id(kStorage, false);
  const std::string tail = "\x89" + global("collections", "OrderedDict") + ")RtR";
  const auto with = [&](const std::string& offset, const std::string& shape, const std::string& strides) {
    return why(head + id + offset + shape + strides + tail);
  };
  const std::string zero = pickled(0), two = pickled(std::vector<int64_t>{2});
  EXPECT_EQ(with(zero, two, two), "read");
  EXPECT_THAT(with(pickled(-1), two, two), HasSubstr("offset is no count"));
  EXPECT_THAT(with("N", two, two), HasSubstr("offset is no count"));
  EXPECT_THAT(with(zero, pickled(std::vector<int64_t>{-2}), two), HasSubstr("shape are not all 0 or more"));
  EXPECT_THAT(with(zero, two, pickled(std::vector<int64_t>{-1})), HasSubstr("strides are not all 0 or more"));
  EXPECT_THAT(with(zero, "N", two), HasSubstr("shape are no tuple"));
  EXPECT_THAT(with(zero, two, ")"), HasSubstr("more dimensions than strides"));
  const std::string many = pickled(std::vector<int64_t>(17, 1));
  EXPECT_THAT(with(zero, many, many), HasSubstr("over the 16 dimensions"));
  EXPECT_THAT(why(head + "N" + zero + two + two + tail), HasSubstr("without a storage"));
  EXPECT_THAT(why(head + id + "tR"), HasSubstr("a tensor of 1 arguments"));
  const std::string metadata = "}" + pickled("conj") + "\x88s";
  const std::string hooks = "\x89}";
  EXPECT_THAT(why(head + id + zero + two + two + hooks + metadata + "tR"), HasSubstr("metadata is not read"));
  EXPECT_EQ(why(head + id + zero + two + two + hooks + "}tR"), "read");
  EXPECT_THAT(why(pickled("x") + "\x85Q"), HasSubstr("expected (\"storage\""));
  EXPECT_THAT(why("NQ"), HasSubstr("BINPERSID at byte 3: expected a tuple"));
  const auto storage = [](const std::string& type, const std::string& size) {
    return why("(" + pickled("storage") + type + pickled("0") + pickled("cpu") + size + "tQ");
  };
  EXPECT_THAT(storage("N", pickled(1)), HasSubstr("no type"));
  EXPECT_THAT(storage(global("collections", "OrderedDict"), pickled(1)), HasSubstr("no type"));
  EXPECT_THAT(storage(global("torch", "FloatStorage"), pickled(-1)), HasSubstr("no key or no size"));
}

TEST(TorchPickle, TypesWithoutAStorageOfTheirOwnLieInUntypedOnes) {
  const std::string id = "(" + pickled("storage") + global("torch.storage", "UntypedStorage") + pickled("0") +
                         pickled("cpu") + pickled(4) + "tQ";
  const auto tensor = [&](const std::string& dtype) {
    return global("torch._utils", "_rebuild_tensor_v3") + "(" + id + pickled(0) + pickled(std::vector<int64_t>{4}) +
           pickled(std::vector<int64_t>{1}) + "\x89}" + dtype + "tR";
  };
  const auto parsed = parse(pickle_of(tensor(global("torch", "float8_e4m3fn"))));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->tensor(parsed->root()).dtype, "F8_E4M3");
  EXPECT_EQ(parsed->tensor(parsed->root()).storage.dtype, "U8");
  EXPECT_THAT(why(tensor(global("torch", "float4_e2m1fn_x2"))), HasSubstr("float4_e2m1fn_x2\" is not a name"));
  EXPECT_THAT(why(tensor("N")), HasSubstr("the tensor has no type"));
  EXPECT_THAT(why(tensor(global("torch", "FloatStorage"))), HasSubstr("the tensor has no type"));
}

// Each of these is as large as is allowed, and ends within a second: they are bounded by counts, not by memory.
TEST(TorchPickle, BombsEndSoon) {
  constexpr size_t kMany = 5'000'000;
  const std::string put = std::string("q\0", 2), get = std::string("h\0", 2);
  struct Bomb {
    std::string name, value, reason;
  };
  const Bomb bombs[] = {
      {"deep marks", repeated("(", kMany), "MARK at byte 66: nested deeper than 64"},
      {"deep tuples", ")" + repeated("\x85", kMany), "nested deeper than 64"},
      {"deep lists", repeated("](", 65), "nested deeper than 64"},
      {"a list in itself", "]" + put + repeated(get + "a", kMany / 3), "nested deeper than 64"},
      {"a wide stack", repeated("N", kMany), "more than the 1000000 values on the stack"},
      {"many lists", repeated("]", kMany), "more than the 1000000"},
      {"a doubling memo", ")" + put + repeated("0", 1), "POP"},
      {"wide tuples", repeated("(" + repeated("N", 10'000) + "t", 500), "more than the 4000000 values allowed"},
      {"a billion laughs", "N" + put + repeated(get + get + "\x86" + put, 100), "nested deeper than 64"},
      {"memo writes", "N" + repeated(put, kMany), "read"},
      {"states", "}" + repeated("}b", kMany), "more than the 1000000 containers allowed"},
      {"long",
       repeated("N", 2) + repeated("\x86"
                                   "N",
                                   kMany),
       "nested deeper than 64"},
  };
  for (const Bomb& bomb : bombs) {
    const std::string bytes = pickle_of(bomb.value);
    const auto begin = std::chrono::steady_clock::now();
    const auto parsed = parse(bytes);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_THAT(parsed.ok() ? "read" : error_message(parsed.status()), HasSubstr(bomb.reason)) << bomb.name;
    EXPECT_LT(seconds.count(), 10) << bomb.name;  // a second where nothing slows it down
  }
}

TEST(TorchPickle, EndsAt64MiB) {
  const std::string bytes = "\x80\x02N" + repeated(std::string("q\0", 2), kMaxPickleBytes / 2) + ".";
  EXPECT_THAT(error_message(parse(bytes).status()), HasSubstr("over the 67108864 bytes allowed"));
}

TEST(TorchPickle, EndsAtEveryCut) {
  const std::string good = pickle_of(testing::state_dict({{"w", 0, 4, {2, 3}, {1, 2}}}, {kStorage}));
  ASSERT_TRUE(parse(good).ok());
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse(good.substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace transept
