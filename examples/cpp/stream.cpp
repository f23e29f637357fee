// Shows an answer as it is generated: stream MODEL TEXT [FIELDS]
// FIELDS: a JSON object of request fields, for instance '{"max_tokens": 64}'.
#include <iostream>
#include <transept.hpp>

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << "usage: stream MODEL TEXT [FIELDS]\n";
    return 2;
  }
  try {
    transept::Model model(argv[1]);
    const auto request = transept::Request(argv[2]).fields(argc > 3 ? argv[3] : "");
    model.generate(request, [](const transept::ResultView& delta) {
      std::cout << delta.text() << std::flush;
      return true;  // false aborts the request
    });
    std::cout << '\n';
  } catch (const transept::Error& error) {
    std::cerr << "stream: " << transept_code_name(error.code()) << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
