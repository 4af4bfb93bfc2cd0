// Ctrl-C, or the same asked by SIGTERM: the first asks the run to stop, the second ends the
// process.
#pragma once

#include <atomic>

namespace tidekv::cli {

// From now on SIGINT and SIGTERM set the flag. Without this call they end the process, as usual.
void catch_interrupts();

// Asks the run to stop for another reason (nobody reads its output any more).
void request_stop();

// What an engine watches.
const std::atomic<bool>* stop_flag();

// Whether one of the two came.
bool interrupted();

}  // namespace tidekv::cli
