// Keys and values of one layer as the layer itself uses them, whatever their layout: it puts those
// of new tokens where they belong, then attends over all of them.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/kv_view.h"

namespace tidekv {

class AttendedKv {
 public:
  virtual ~AttendedKv() = default;

  // Where the keys and values of `rows` new tokens go: behind each head's len.
  virtual KvView room(std::int64_t rows) = 0;
  // They are there.
  virtual void advance(std::int64_t rows) = 0;
  // Keys that attention meets at once when `rows` more tokens are there: what the mask and the
  // scores it is to hold must have room for.
  virtual KeyCounts keys_met(std::int64_t rows) const = 0;
  // Backend::attend over everything, the rows of q being the newest tokens. Where heads attend one
  // by one, each in turn holds its scores.
  virtual void attend(Backend& backend, DeviceView q, const AttentionOptions& options) = 0;

 protected:
  AttendedKv() = default;
  AttendedKv(const AttendedKv&) = default;
  AttendedKv(AttendedKv&&) = default;
  AttendedKv& operator=(const AttendedKv&) = default;
  AttendedKv& operator=(AttendedKv&&) = default;
};

}  // namespace tidekv
