// A shared library of the system that is loaded when it is first needed, not linked: most processes never need it, and
// packages do not depend on it. Once loaded it stays until the process ends, as libraries that are linked do: those
// that theirs depend on do not always survive being unloaded. A value that is copied; thread-safe.
//
// Of a library in use, one file has the table of functions (hub/curl_library.h is an example):
//
//   #define TRANSEPT_CURL_FUNCTIONS(X) X(curl_easy_init) X(curl_easy_cleanup)
//   struct CurlLibrary { TRANSEPT_CURL_FUNCTIONS(TRANSEPT_FUNCTION_MEMBER) };
//   Status load(CurlLibrary& functions) {
//     ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::open("libcurl.so.4"));
//     TRANSEPT_CURL_FUNCTIONS(TRANSEPT_FIND_FUNCTION)
//     return ok_status();
//   }
//   const LoadedOnce<CurlLibrary>& loaded() {
//     static const LoadedOnce<CurlLibrary> loaded(load);
//     return loaded;
//   }
#pragma once

#include <string>

#include "base/status.h"

namespace transept {

class DynamicLibrary final {
 public:
  // `file`: libNAME.so.VERSION, looked for where the system's loader looks; or a path. Errors: kNotFound. They do not
  // have the loader's own words, which name folders: clients of a server read them.
  static StatusOr<DynamicLibrary> open(const std::string& file);

  // Sets `function` to the library's function of that name, or to that of a library that it depends on. Errors:
  // kNotFound, which name the file.
  template <typename Function>
  Status find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr ? ok_status() : lacks(name);
  }

 private:
  DynamicLibrary(std::string file, void* handle) : file_(std::move(file)), handle_(handle) {}
  void* symbol(const char* name) const;  // null: there is none
  Status lacks(const char* name) const;

  std::string file_;
  void* handle_;
};

// A table of functions and what loading it gave.
template <typename Functions>
struct LoadedOnce {
  explicit LoadedOnce(Status (*load)(Functions&)) : status(load(functions)) {}

  Functions functions;
  Status status;
};

#define TRANSEPT_FUNCTION_MEMBER(name) decltype(&::name) name = nullptr;
// In a function that returns a Status and has a DynamicLibrary `library` and a table `functions`.
#define TRANSEPT_FIND_FUNCTION(name) RETURN_IF_ERROR(library.find(#name, functions.name));

}  // namespace transept
