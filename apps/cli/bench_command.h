#pragma once

#include <memory>

#include "command.h"

namespace tidekv::cli {

std::unique_ptr<Command> make_bench_command();

}  // namespace tidekv::cli
