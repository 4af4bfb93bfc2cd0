#pragma once

#include <memory>

#include "command.h"

namespace tidekv::cli {

std::unique_ptr<Command> make_sweep_command();

}  // namespace tidekv::cli
