// A JSON text as a stream of events, for what is too large for a tree, and the tree of a small
// part.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "tidekv/result.h"

namespace tidekv {

// Takes a text's events in order. The first error ends the reading.
class JsonHandler {
 public:
  JsonHandler() = default;
  JsonHandler(const JsonHandler&) = delete;
  JsonHandler& operator=(const JsonHandler&) = delete;
  virtual ~JsonHandler() = default;

  virtual Status scalar(JsonValue value) = 0;    // anything but an array or object
  virtual Status open(JsonValue container) = 0;  // an empty array or object: its content follows
  virtual Status close() = 0;                    // the innermost open array or object
  virtual Status key(std::string_view name) = 0;
  virtual std::string where() const = 0;  // the reader is, for an error: "<file>: <section>"
};

// Reads `text`, one JSON value; errors of the syntax are led by the handler's where().
Status read_json_events(std::string_view text, JsonHandler& handler);

// Builds one value from events, within limits and without duplicate keys.
class JsonTreeBuilder {
 public:
  explicit JsonTreeBuilder(const JsonLimits& limits) : limits_(limits) {}

  // Forgets the last value and begins that of `key`, which stands inside `depth` open containers.
  // `where` leads errors.
  void start(std::string where, std::string_view key, std::int64_t depth);
  Status key(std::string_view name);
  Status scalar(JsonValue value);
  Status open(JsonValue container);
  void close();
  // The value, once it is complete.
  std::optional<JsonValue> take();

 private:
  struct Open {
    JsonValue container;
    std::string key;             // whose value comes next, in an object
    std::set<std::string> seen;  // ordered: hostile names cannot make it slow, as hashing could
  };

  Error bad(const std::string& what) const;
  Status count_value();
  void place(JsonValue value);

  JsonLimits limits_;
  std::string where_;
  std::int64_t depth_ = 0;
  std::vector<Open> open_;
  std::optional<JsonValue> complete_;
  std::string last_key_;
  std::int64_t num_values_ = 0;
};

}  // namespace tidekv
