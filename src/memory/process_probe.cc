#include "memory/process_probe.h"

#include <cstdio>
#include <cstring>

namespace tidekv {
namespace {

// A line such as "VmHWM:     1234 kB" of /proc/self/status, in bytes.
std::int64_t status_bytes(const char* key) {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) {
    return 0;
  }
  std::int64_t bytes = 0;
  char line[256];
  while (std::fgets(line, sizeof(line), status) != nullptr) {
    long long kib = 0;
    if (std::strncmp(line, key, std::strlen(key)) == 0 &&
        std::sscanf(line + std::strlen(key), ": %lld kB", &kib) == 1) {
      bytes = kib * 1024;
      break;
    }
  }
  std::fclose(status);
  return bytes;
}

}  // namespace

std::int64_t process_peak_bytes() { return status_bytes("VmHWM"); }
std::int64_t process_resident_bytes() { return status_bytes("VmRSS"); }

}  // namespace tidekv
