// What the system says this process holds, Eq. (2), to stand beside the ledger.
#pragma once

#include <cstdint>

namespace tidekv {

// VmHWM: the largest resident set so far, in bytes; 0 where the system does not tell.
std::int64_t process_peak_bytes();

// VmRSS: resident bytes now; 0 where the system does not tell.
std::int64_t process_resident_bytes();

}  // namespace tidekv
