// What a file is that is not what its reader expected.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tidekv {

// "; the file looks like <what people have by mistake under a weight file's name>", or nothing.
std::string looks_like(std::span<const std::byte> bytes);

}  // namespace tidekv
