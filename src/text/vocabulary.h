// Token ids, what each is spelled like and which bytes it stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

class Vocabulary {
 public:
  // The model's tokens and the added ones. `file` names the file in errors.
  static Result<Vocabulary> build(const TokenizerSpec& spec, const std::string& file);

  std::int64_t size() const { return static_cast<std::int64_t>(by_id_.size()); }  // largest id + 1

  // Id of a token of the model (not one that is only an added token) by its spelling; -1: none.
  std::int32_t find(std::string_view spelling) const;

  // Id of any token, added ones included, by its text; -1: none. Looks at every token.
  std::int32_t search(std::string_view text) const;

  std::string_view text(std::int32_t id) const;
  std::string_view bytes(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  std::size_t longest_text() const { return longest_text_; }
  std::size_t longest_bytes() const { return longest_bytes_; }  // any token stands for

 private:
  struct Entry {
    std::uint32_t text_begin = 0;
    std::uint32_t text_len = 0;
    std::uint32_t bytes_begin = 0;
    std::uint32_t bytes_len = 0;
    bool used = false;
    bool special = false;
  };
  // Sorted by spelling: no hash, so no file can make lookups slow. `prefix` is the first eight
  // bytes as a big-endian number, which decides most comparisons.
  struct Key {
    std::uint64_t prefix = 0;
    std::int32_t id = -1;
  };

  Status add_model_tokens(const TokenizerSpec& spec, const std::string& file);
  Status add_added_token(const AddedToken& token, const TokenizerSpec& spec,
                         const std::string& file);
  Status sort_keys(const TokenizerSpec& spec, const std::string& file);
  void set_entry(std::int32_t id, std::string_view text, std::string_view bytes);
  const Entry* entry(std::int32_t id) const;

  std::string storage_;
  std::vector<Entry> by_id_;
  std::vector<Key> keys_;
  std::size_t longest_text_ = 0;
  std::size_t longest_bytes_ = 0;
};

}  // namespace tidekv
