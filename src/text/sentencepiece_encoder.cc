#include "text/sentencepiece_encoder.h"

#include <array>
#include <cmath>
#include <utility>

#include "text/piece_bpe.h"
#include "text/piece_normalizer.h"
#include "text/piece_unigram.h"
#include "text/space_mark.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

// Bounds the ways to cut one piece in two, and how far a look-up reads ahead. Real pieces are a few
// characters long.
constexpr std::size_t kMaxPieceBytes = 512;

// Ids for what is no piece: one for each byte, or one for any such text.
struct UnknownIds {
  bool byte_fallback = false;
  std::array<std::int32_t, 256> bytes{};
  std::int32_t unknown = -1;
};

struct EncoderParts {
  PieceNormalizer normalizer;
  SpacePrefix space_prefix = SpacePrefix::kEvery;
  AddedTokens user_defined;  // searched for in normalised text
  std::unique_ptr<const PieceModel> model;
  UnknownIds unknown;
  std::size_t longest_bytes = 0;  // a token stands for at most this many; 0: no such bound
};

class SentencePieceEncoder final : public TextEncoder {
 public:
  explicit SentencePieceEncoder(EncoderParts parts) : parts_(std::move(parts)) {}

  Status append_ids(std::span<const TextSegment> segments,
                    std::vector<std::int32_t>& ids) const override {
    PieceScratch scratch;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (segments[i].id >= 0) {
        ids.push_back(segments[i].id);
        continue;
      }
      const bool prefixed = parts_.space_prefix == SpacePrefix::kEvery ||
                            (parts_.space_prefix == SpacePrefix::kFirst && i == 0);
      const std::string text = parts_.normalizer.normalize(segments[i].text, prefixed);
      for (const TextSegment& part : parts_.user_defined.split(text, {})) {
        if (part.id >= 0) {
          ids.push_back(part.id);
        } else {
          append_pieces(part.text, scratch, ids);
        }
      }
    }
    return Ok{};
  }

  std::string normalized(std::string_view text) const override {
    return parts_.normalizer.normalize(text, false);
  }

  std::size_t fewest_tokens(std::string_view text) const override {
    const std::size_t longest = parts_.longest_bytes;
    return longest == 0 ? 0 : (text.size() + longest - 1) / longest;
  }

 private:
  void append_pieces(std::string_view text, PieceScratch& scratch,
                     std::vector<std::int32_t>& ids) const {
    parts_.model->cut(text, scratch);
    std::size_t begin = 0;
    bool after_unknown = false;  // a run of unknown characters is one token
    for (const CutPiece& piece : scratch.pieces) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
      } else if (parts_.unknown.byte_fallback) {
        for (const char byte : text.substr(begin, piece.end - begin)) {
          ids.push_back(parts_.unknown.bytes[static_cast<std::uint8_t>(byte)]);
        }
      } else if (!after_unknown) {
        ids.push_back(parts_.unknown.unknown);
      }
      after_unknown = piece.id < 0 && !parts_.unknown.byte_fallback;
      begin = piece.end;
    }
  }

  EncoderParts parts_;
};

Result<UnknownIds> find_unknown_ids(const SentencePieceSpec& spec, const Vocabulary& vocabulary,
                                    const std::string& file) {
  UnknownIds ids{spec.byte_fallback, {}, spec.unknown_id};
  if (!spec.byte_fallback) {
    if (ids.unknown < 0) {
      return Error{ErrorCode::kBadFile, file + ": " + spec.base.tokens_field +
                                            ": neither a token for each byte nor an unknown one; "
                                            "expected one of the two for text without tokens"};
    }
    return ids;
  }
  for (std::size_t byte = 0; byte < ids.bytes.size(); ++byte) {
    const std::string spelling = token_of_byte(static_cast<std::uint8_t>(byte));
    ids.bytes[byte] = vocabulary.find(spelling);
    if (ids.bytes[byte] < 0) {
      return Error{ErrorCode::kBadFile, file + ": " + spec.base.tokens_field + ": no token " +
                                            quoted_text(spelling) +
                                            "; expected one for each of the 256 bytes"};
    }
  }
  return ids;
}

// What holds for every token, whichever file it came from.
Status check_pieces(const SentencePieceSpec& spec, const std::string& file) {
  for (std::size_t i = 0; i < spec.base.tokens.size(); ++i) {
    const std::string_view piece = spec.base.tokens[i];
    const auto bad = [&](std::string message) {
      message.insert(0, file + ": " + spec.base.tokens_field + "[" + std::to_string(i) + "]");
      return Error{ErrorCode::kBadFile, std::move(message)};
    };
    if (piece.empty() || valid_utf8_prefix(piece) != piece.size()) {
      return bad(" is " + quoted_text(piece) + "; expected at least one character of valid UTF-8");
    }
    if (spec.types[i] == PieceType::kNormal && piece.size() > kMaxPieceBytes) {
      return Error{ErrorCode::kUnsupported,
                   file + ": " + spec.base.tokens_field + "[" + std::to_string(i) + "] has " +
                       std::to_string(piece.size()) + " bytes; expected at most " +
                       std::to_string(kMaxPieceBytes)};
    }
    if (spec.types[i] == PieceType::kByte && byte_of_token(piece) < 0) {
      return bad(" is a byte spelled " + quoted_text(piece) + R"(; expected "<0x00>" to "<0xFF>")");
    }
    if (!spec.scores.empty() && !std::isfinite(spec.scores[i])) {
      return bad(" has a score that is not finite; expected a finite number");
    }
  }
  return Ok{};
}

// User-defined pieces among the tokens. They must survive normalisation, or the text would have
// to be searched for them before it.
Result<AddedTokens> find_user_defined(const SentencePieceSpec& spec,
                                      const PieceNormalizer& normalizer, const std::string& file) {
  std::vector<AddedToken> found;
  for (std::size_t i = 0; i < spec.base.tokens.size(); ++i) {
    if (spec.types[i] != PieceType::kUserDefined) {
      continue;
    }
    const std::string piece(spec.base.tokens[i]);
    if (normalizer.can_shorten() && normalizer.normalize(piece, false) != piece) {
      return Error{ErrorCode::kUnsupported,
                   file + ": " + spec.base.tokens_field + "[" + std::to_string(i) +
                       "]: the user-defined piece " + quoted_text(piece) +
                       " is changed by the model's own normalizer; expected one that is not"};
    }
    found.push_back({.id = spec.base.token_ids[i], .content = piece});
  }
  return AddedTokens::build(found, file + ": " + spec.base.tokens_field);
}

}  // namespace

Result<std::unique_ptr<const TextEncoder>> make_sentencepiece_encoder(const SentencePieceSpec& spec,
                                                                      const Vocabulary& vocabulary,
                                                                      const std::string& file) {
  TIDEKV_TRY(check_pieces(spec, file));
  EncoderParts parts;
  TIDEKV_ASSIGN(parts.normalizer, PieceNormalizer::build(spec, file));
  parts.space_prefix = spec.base.space_prefix;
  TIDEKV_ASSIGN(parts.unknown, find_unknown_ids(spec, vocabulary, file));
  if (spec.model == SentencePieceSpec::Model::kBpe) {
    TIDEKV_ASSIGN(parts.user_defined, find_user_defined(spec, parts.normalizer, file));
    TIDEKV_ASSIGN(PieceBpe bpe, PieceBpe::build(spec, vocabulary, file));
    parts.model = std::make_unique<const PieceBpe>(std::move(bpe));
  } else {
    parts.model = std::make_unique<const PieceUnigram>(spec);
  }
  if (spec.byte_fallback && !parts.normalizer.can_shorten()) {
    parts.longest_bytes = vocabulary.longest_bytes();
  }
  return std::unique_ptr<const TextEncoder>(
      std::make_unique<SentencePieceEncoder>(std::move(parts)));
}

}  // namespace tidekv
