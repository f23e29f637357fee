// Translates standard input line by line: translate MODEL [FIELDS] < in.txt > out.txt
// FIELDS: a JSON object of request fields, for instance '{"source_lang": "en_XX", "target_lang": "fr_XX"}'.
// Up to 64 lines are in flight at once; they share the engine's batch, and their translations come out in order.
#include <deque>
#include <iostream>
#include <string>
#include <transept.hpp>

namespace {

void finish(std::deque<transept::Stream>& streams) {
  std::cout << streams.front().next()->text() << '\n';
  streams.pop_front();
}

void translate(transept::Model& model, const std::string& fields) {
  constexpr std::size_t kInFlight = 64;
  std::deque<transept::Stream> streams;
  for (std::string line; std::getline(std::cin, line);) {
    if (streams.size() == kInFlight) finish(streams);
    streams.push_back(model.submit(transept::Request(line).fields(fields)));
  }
  while (!streams.empty()) finish(streams);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: translate MODEL [FIELDS] < in.txt > out.txt\n";
    return 2;
  }
  try {
    transept::Model model(argv[1]);
    translate(model, argc > 2 ? argv[2] : "");
  } catch (const transept::Error& error) {
    std::cerr << "translate: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
