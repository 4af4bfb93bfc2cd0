// The edge of the library: what the standard library throws becomes a value.
#pragma once

#include <new>
#include <string>
#include <system_error>

#include "tidekv/result.h"

namespace tidekv {

// The standard library reports a failed allocation by throwing. Nothing else in the library throws.
template <typename Function>
auto values_not_exceptions(const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "out of host memory"};
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kOutOfMemory,
                 std::string("the system refused a resource: ") + error.what()};
  }
}

}  // namespace tidekv
