#include "interrupt.h"

#include <unistd.h>

#include <csignal>

namespace tidekv::cli {
namespace {

// A signal handler reaches nothing but globals; these two are this program's only ones.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): as said
std::atomic<bool> stop_requested{false};
std::atomic<bool> interrupt_seen{false};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<bool>::is_always_lock_free, "set inside a signal handler");

extern "C" void on_interrupt(int /*signal*/) {
  interrupt_seen.store(true);
  stop_requested.store(true);
  constexpr char kNote[] = "\ntidekv: stopping; Ctrl-C again ends it at once\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, kNote, sizeof kNote - 1);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  // The default action comes back with the first signal, so the second one ends the process.
  // Reads and writes under way go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

void request_stop() { stop_requested.store(true); }

const std::atomic<bool>* stop_flag() { return &stop_requested; }

bool interrupted() { return interrupt_seen.load(); }

}  // namespace tidekv::cli
