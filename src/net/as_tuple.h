// kAsTuple: the completion token of this folder's coroutines. A call of asio gives its error as a value, and throws
// nothing.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace transept {

inline constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace transept
