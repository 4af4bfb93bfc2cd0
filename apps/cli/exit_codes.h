// What the program returns to the shell; listed in --help and docs/cli.md.
#pragma once

#include "tidekv/result.h"

namespace tidekv::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitOther = 1;          // anything else, e.g. stdout cannot be written
inline constexpr int kExitUsage = 2;          // a flag or a request is wrong
inline constexpr int kExitBadFile = 3;        // missing, damaged, not supported, or not writable
inline constexpr int kExitDoesNotFit = 4;     // the plan exceeds --memory-limit
inline constexpr int kExitOutOfMemory = 5;    // the system refused an allocation
inline constexpr int kExitInterrupted = 130;  // Ctrl-C

constexpr int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ErrorCode::kBadFile:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
      return kExitBadFile;
    case ErrorCode::kDoesNotFit:
      return kExitDoesNotFit;
    case ErrorCode::kOutOfMemory:
      return kExitOutOfMemory;
    case ErrorCode::kCancelled:
      return kExitInterrupted;
  }
  return kExitOther;
}

}  // namespace tidekv::cli
