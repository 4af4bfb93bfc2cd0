#include "text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/space_mark.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

// Ids index tables, so a short file must not be able to ask for long ones. Real vocabularies have
// hardly any holes.
std::int64_t id_limit(std::size_t num_tokens) {
  return static_cast<std::int64_t>(num_tokens) * 8 + 65536;
}

std::uint64_t prefix_of(std::string_view text) {
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    prefix = prefix << 8U | (i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0U);
  }
  return prefix;
}

std::string bytes_of_token(std::string_view token, TokenSpelling spelling) {
  if (spelling == TokenSpelling::kSpaceMark) {
    const int byte = byte_of_token(token);
    return byte >= 0 ? std::string(1, static_cast<char>(byte)) : without_space_marks(token);
  }
  return bytes_of_spelling(token).value_or(std::string(token));
}

Error bad_file(const std::string& file, const std::string& message) {
  return Error{ErrorCode::kBadFile, file + ": " + message};
}

}  // namespace

Result<Vocabulary> Vocabulary::build(const TokenizerSpec& spec, const std::string& file) {
  const std::int64_t limit = id_limit(spec.tokens.size() + spec.added_tokens.size());
  std::int32_t largest = -1;
  const auto check_id = [&](std::int32_t id, std::string_view text,
                            const std::string& field) -> Status {
    largest = std::max(largest, id);
    if (id < 0 || id >= limit) {
      return bad_file(file, field + ": " + quoted_text(text) + " has id " + std::to_string(id) +
                                "; expected ids below " + std::to_string(limit) +
                                " for this many tokens");
    }
    return Ok{};
  };
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    TIDEKV_TRY(check_id(spec.token_ids[i], spec.tokens[i], spec.tokens_field));
  }
  for (const AddedToken& token : spec.added_tokens) {
    TIDEKV_TRY(check_id(token.id, token.content, spec.added_tokens_field));
  }

  Vocabulary vocabulary;
  vocabulary.by_id_.resize(static_cast<std::size_t>(std::int64_t{largest} + 1));
  TIDEKV_TRY(vocabulary.add_model_tokens(spec, file));
  TIDEKV_TRY(vocabulary.sort_keys(spec, file));
  for (const AddedToken& token : spec.added_tokens) {
    TIDEKV_TRY(vocabulary.add_added_token(token, spec, file));
  }
  return vocabulary;
}

void Vocabulary::set_entry(std::int32_t id, std::string_view text, std::string_view bytes) {
  Entry& entry = by_id_[static_cast<std::size_t>(id)];
  entry.text_begin = static_cast<std::uint32_t>(storage_.size());
  entry.text_len = static_cast<std::uint32_t>(text.size());
  storage_ += text;
  entry.bytes_begin = entry.text_begin;
  entry.bytes_len = static_cast<std::uint32_t>(bytes.size());
  if (bytes != text) {
    entry.bytes_begin = static_cast<std::uint32_t>(storage_.size());
    storage_ += bytes;
  }
  entry.used = true;
  longest_bytes_ = std::max(longest_bytes_, bytes.size());
}

Status Vocabulary::add_model_tokens(const TokenizerSpec& spec, const std::string& file) {
  keys_.reserve(spec.tokens.size());
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    const std::string_view token = spec.tokens[i];
    const std::int32_t id = spec.token_ids[i];
    if (entry(id) != nullptr) {
      return bad_file(file, spec.tokens_field + ": " + quoted_text(text(id)) + " and " +
                                quoted_text(token) + " both have id " + std::to_string(id) +
                                "; expected every id once");
    }
    set_entry(id, token, bytes_of_token(token, spec.spelling));
    longest_text_ = std::max(longest_text_, token.size());
    keys_.push_back({prefix_of(token), id});
  }
  return Ok{};
}

Status Vocabulary::sort_keys(const TokenizerSpec& spec, const std::string& file) {
  std::sort(keys_.begin(), keys_.end(), [this](const Key& a, const Key& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : text(a.id) < text(b.id);
  });
  for (std::size_t i = 1; i < keys_.size(); ++i) {
    if (text(keys_[i - 1].id) == text(keys_[i].id)) {
      return bad_file(file, spec.tokens_field + ": " + quoted_text(text(keys_[i].id)) +
                                " is there twice; expected every token once");
    }
  }
  return Ok{};
}

// An added token stands for its content as written; it is not spelled in the byte alphabet.
Status Vocabulary::add_added_token(const AddedToken& token, const TokenizerSpec& spec,
                                   const std::string& file) {
  const std::int32_t model_id = find(token.content);
  if (model_id >= 0 && model_id != token.id) {
    return bad_file(file, spec.added_tokens_field + ": " + quoted_text(token.content) + " has id " +
                              std::to_string(token.id) + " but " + spec.tokens_field +
                              " gives it " + std::to_string(model_id) + "; expected the same id");
  }
  if (entry(token.id) != nullptr && text(token.id) != token.content) {
    return bad_file(file, spec.added_tokens_field + ": " + quoted_text(token.content) + " has id " +
                              std::to_string(token.id) + ", which is " +
                              quoted_text(text(token.id)) + "; expected an id of its own");
  }
  if (model_id < 0) {
    set_entry(token.id, token.content, token.content);
  }
  by_id_[static_cast<std::size_t>(token.id)].special = token.special;
  return Ok{};
}

std::int32_t Vocabulary::find(std::string_view spelling) const {
  const std::uint64_t prefix = prefix_of(spelling);
  const auto at =
      std::lower_bound(keys_.begin(), keys_.end(), spelling, [&](const Key& key, std::string_view) {
        return key.prefix != prefix ? key.prefix < prefix : text(key.id) < spelling;
      });
  return at != keys_.end() && text(at->id) == spelling ? at->id : -1;
}

std::int32_t Vocabulary::search(std::string_view wanted) const {
  for (std::int32_t id = 0; id < size(); ++id) {
    if (entry(id) != nullptr && text(id) == wanted) {
      return id;
    }
  }
  return -1;
}

const Vocabulary::Entry* Vocabulary::entry(std::int32_t id) const {
  if (id < 0 || id >= size() || !by_id_[static_cast<std::size_t>(id)].used) {
    return nullptr;
  }
  return &by_id_[static_cast<std::size_t>(id)];
}

std::string_view Vocabulary::text(std::int32_t id) const {
  const Entry* found = entry(id);
  return found == nullptr ? std::string_view{}
                          : std::string_view{storage_}.substr(found->text_begin, found->text_len);
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
  const Entry* found = entry(id);
  return found == nullptr || found->special
             ? std::string_view{}
             : std::string_view{storage_}.substr(found->bytes_begin, found->bytes_len);
}

bool Vocabulary::is_special(std::int32_t id) const {
  const Entry* found = entry(id);
  return found != nullptr && found->special;
}

}  // namespace tidekv
