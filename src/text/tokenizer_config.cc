#include "text/tokenizer_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "text/json_fields.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

using nlohmann::json;

// Collects the two fields of the file's object and skips the rest, whatever its size.
class ConfigEvents final : public nlohmann::json_sax<json> {
 public:
  explicit ConfigEvents(const std::string& file) : file_(file) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(value); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      wanted_ = name == "add_bos_token" || name == "bos_token";
      field_ = wanted_ ? name : "";
      collector_.start(file_ + ": " + field_);
      return !wanted_ || !fields_.contains(name) ||
             keep(Error{ErrorCode::kBadFile,
                        file_ + ": " + name + " is there twice; expected every field once"});
    }
    return !wanted_ || keep(collector_.key(name));
  }
  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return keep(Error{ErrorCode::kBadFile, file_ + ": not valid JSON at byte " +
                                               std::to_string(position) +
                                               "; expected a complete JSON object"});
  }

  Result<TokenizerConfig> finish();

 private:
  bool keep(Status status) {
    if (!status.ok()) {
      error_ = std::move(status).error();
    }
    return !error_.has_value();
  }
  bool add(json value) {
    if (depth_ == 0) {
      return keep(
          Error{ErrorCode::kBadFile, file_ + " is " + shown(value) + "; expected an object"});
    }
    return !wanted_ || (keep(collector_.add(std::move(value))) && collected());
  }
  bool open(json value) {
    if (depth_ == 0 && value.is_array()) {
      return add(std::move(value));
    }
    const bool nested = depth_++ > 0;
    return !nested || !wanted_ || keep(collector_.add(std::move(value)));
  }
  bool close() {
    --depth_;
    if (depth_ == 0 || !wanted_) {
      return true;
    }
    collector_.close();
    return collected();
  }
  bool collected() {
    if (collector_.complete()) {
      fields_[field_] = collector_.take();
    }
    return true;
  }

  const std::string& file_;
  std::optional<Error> error_;
  JsonCollector collector_;
  json fields_ = json::object();
  std::string field_;
  bool wanted_ = false;
  std::size_t depth_ = 0;
};

Result<TokenizerConfig> ConfigEvents::finish() {
  if (error_.has_value()) {
    return *std::move(error_);
  }
  TIDEKV_ASSIGN(const JsonFields fields,
                JsonFields::of(fields_, file_ + ": ", {"add_bos_token", "bos_token"}));
  TokenizerConfig config;
  const json* add_bos = fields.find("add_bos_token");
  if (add_bos != nullptr && !add_bos->is_null()) {
    TIDEKV_ASSIGN(config.add_bos_token, fields.boolean("add_bos_token"));
  }
  const json* bos = fields.find("bos_token");
  if (bos == nullptr || bos->is_null()) {
    return config;
  }
  const json* text = bos->is_object() && bos->contains("content") ? &(*bos)["content"] : bos;
  if (!text->is_string()) {
    return Error{ErrorCode::kBadFile, fields.path("bos_token") + " is " + shown(*text) +
                                          "; expected a string, or an object with \"content\""};
  }
  config.bos_token = text->get<std::string>();
  return config;
}

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(std::string_view text, const std::string& file) {
  ConfigEvents events(file);
  json::sax_parse(text.data(), text.data() + text.size(), &events);
  return events.finish();
}

}  // namespace tidekv
