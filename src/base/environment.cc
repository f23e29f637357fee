#include "base/environment.h"

#include <algorithm>
#include <cctype>

namespace transept {

std::string environment_name(std::string_view flag) {
  std::string name = "TRANSEPT_";
  for (const char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

Status blame_environment(const Status& status, const std::set<std::string>& flags) {
  const std::string message = error_message(status);
  if (status.ok() || !message.starts_with("--")) return status;
  const size_t end = std::min(message.find_first_of(" :=", 2), message.size());
  const std::string flag = message.substr(2, end - 2);
  if (!flags.contains(flag)) return status;
  // "--flag value" and "--flag=value" give the value; "--flag: why" and "--flag wants ..." do not.
  const bool has_value = end < message.size() && message[end] != ':';
  const std::string rest = has_value ? "=" + message.substr(end + 1) : message.substr(end);
  const Status blamed(status.code(), environment_name(flag) + rest);
  const std::string param = error_param(status);
  return param.empty() ? blamed : with_param(blamed, param);
}

}  // namespace transept
