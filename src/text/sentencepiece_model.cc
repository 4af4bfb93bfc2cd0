#include "text/sentencepiece_model.h"

#include <cstring>
#include <utility>

#include "text/space_mark.h"
#include "text/utf8.h"
#include "text/wire_reader.h"

namespace tidekv {
namespace {

using Kind = WireField::Kind;

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20U;
constexpr std::size_t kMaxPieces = 1 << 21U;

// Numbers of the message's fields.
constexpr std::int64_t kPieces = 1;
constexpr std::int64_t kTrainerSpec = 2;
constexpr std::int64_t kNormalizerSpec = 3;
constexpr std::int64_t kPieceText = 1;
constexpr std::int64_t kPieceScore = 2;
constexpr std::int64_t kPieceType = 3;
constexpr std::int64_t kModelType = 3;
constexpr std::int64_t kWhitespaceAsSuffix = 24;
constexpr std::int64_t kByteFallback = 35;
constexpr std::int64_t kBosId = 41;
constexpr std::int64_t kCharsmap = 2;
constexpr std::int64_t kDummyPrefix = 3;
constexpr std::int64_t kRemoveExtraWhitespaces = 4;
constexpr std::int64_t kEscapeWhitespaces = 5;

struct Piece {
  std::string_view text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

class ModelReader {
 public:
  explicit ModelReader(const std::string& file) : file_(file) {
    spec_.base.spelling = TokenSpelling::kSpaceMark;
    spec_.base.tokens_field = "pieces";
    spec_.base.added_tokens_field = "pieces";
    spec_.base.space_prefix = SpacePrefix::kEvery;  // the format's own defaults
    spec_.remove_extra_whitespace = true;
  }

  Result<SentencePieceSpec> read(std::string_view bytes);

 private:
  Error bad(const std::string& message) const {
    return Error{ErrorCode::kBadFile, file_ + ": " + message};
  }
  Error unsupported(const std::string& message) const {
    return Error{ErrorCode::kUnsupported, file_ + ": " + message};
  }
  Status read_piece(std::string_view bytes);
  Status add_piece(const Piece& piece);
  Status read_trainer_spec(std::string_view bytes);
  Status read_trainer_field(const WireField& field);
  Status read_normalizer_spec(std::string_view bytes);
  Status finish();

  const std::string& file_;
  SentencePieceSpec spec_;
  bool has_trainer_spec_ = false;
  bool has_normalizer_spec_ = false;
  std::int64_t model_type_ = 1;  // the format's own default
  std::int64_t bos_id_ = 1;
};

Status ModelReader::read_piece(std::string_view bytes) {
  const std::size_t index = spec_.types.size();
  const std::string where = file_ + ": pieces[" + std::to_string(index) + "]";
  if (index >= kMaxPieces) {
    return unsupported("more than " + std::to_string(kMaxPieces) + " pieces; expected fewer");
  }
  Piece piece;
  WireReader reader(bytes, where);
  while (!reader.done()) {
    TIDEKV_ASSIGN(const WireField field, reader.next());
    if (field.number == kPieceText) {
      TIDEKV_TRY(reader.expect(field, Kind::kBytes, "piece"));
      piece.text = field.bytes;
    } else if (field.number == kPieceScore) {
      TIDEKV_TRY(reader.expect(field, Kind::kFixed32, "score"));
      const auto bits = static_cast<std::uint32_t>(field.value);
      std::memcpy(&piece.score, &bits, sizeof(bits));
    } else if (field.number == kPieceType) {
      TIDEKV_TRY(reader.expect(field, Kind::kVarint, "type"));
      if (field.value < 1 || field.value > 6) {
        return Error{ErrorCode::kUnsupported, where + ": type is " + std::to_string(field.value) +
                                                  "; expected a number from 1 to 6"};
      }
      piece.type = static_cast<PieceType>(field.value);
    }
  }
  return add_piece(piece);
}

Status ModelReader::add_piece(const Piece& piece) {
  const auto id = static_cast<std::int32_t>(spec_.types.size());
  spec_.base.tokens.add(piece.text);
  spec_.base.token_ids.push_back(id);
  spec_.scores.push_back(piece.score);
  spec_.types.push_back(piece.type);
  if (piece.type == PieceType::kUnknown) {
    if (spec_.unknown_id >= 0) {
      return bad("pieces[" + std::to_string(id) + "] is unknown, as pieces[" +
                 std::to_string(spec_.unknown_id) + "] is; expected exactly one");
    }
    spec_.unknown_id = id;
  }
  if (piece.type == PieceType::kUnknown || piece.type == PieceType::kControl) {
    spec_.base.added_tokens.push_back(
        {.id = id, .content = std::string(piece.text), .special = true});
  }
  return Ok{};
}

Status ModelReader::read_trainer_field(const WireField& field) {
  switch (field.number) {
    case kModelType:
      model_type_ = static_cast<std::int64_t>(field.value);
      break;
    case kByteFallback:
      spec_.byte_fallback = field.value != 0;
      break;
    case kBosId:
      bos_id_ = static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value));
      break;
    case kWhitespaceAsSuffix:
      if (field.value != 0) {
        return unsupported(
            "trainer_spec.treat_whitespace_as_suffix is true; expected false: a space in front");
      }
      break;
    default:
      break;
  }
  return Ok{};
}

Status ModelReader::read_trainer_spec(std::string_view bytes) {
  has_trainer_spec_ = true;
  const std::string where = file_ + ": trainer_spec";
  WireReader reader(bytes, where);
  while (!reader.done()) {
    TIDEKV_ASSIGN(const WireField field, reader.next());
    for (const auto& [number, name] :
         {std::pair{kModelType, "model_type"}, std::pair{kByteFallback, "byte_fallback"},
          std::pair{kBosId, "bos_id"},
          std::pair{kWhitespaceAsSuffix, "treat_whitespace_as_suffix"}}) {
      if (field.number == number) {
        TIDEKV_TRY(reader.expect(field, Kind::kVarint, name));
      }
    }
    TIDEKV_TRY(read_trainer_field(field));
  }
  return Ok{};
}

Status ModelReader::read_normalizer_spec(std::string_view bytes) {
  has_normalizer_spec_ = true;
  const std::string where = file_ + ": normalizer_spec";
  WireReader reader(bytes, where);
  while (!reader.done()) {
    TIDEKV_ASSIGN(const WireField field, reader.next());
    if (field.number == kCharsmap) {
      TIDEKV_TRY(reader.expect(field, Kind::kBytes, "precompiled_charsmap"));
      spec_.charsmap = field.bytes;
    } else if (field.number == kDummyPrefix) {
      TIDEKV_TRY(reader.expect(field, Kind::kVarint, "add_dummy_prefix"));
      spec_.base.space_prefix = field.value != 0 ? SpacePrefix::kEvery : SpacePrefix::kNever;
    } else if (field.number == kRemoveExtraWhitespaces) {
      TIDEKV_TRY(reader.expect(field, Kind::kVarint, "remove_extra_whitespaces"));
      spec_.remove_extra_whitespace = field.value != 0;
    } else if (field.number == kEscapeWhitespaces) {
      TIDEKV_TRY(reader.expect(field, Kind::kVarint, "escape_whitespaces"));
      if (field.value == 0) {
        return unsupported("normalizer_spec.escape_whitespaces is false; expected true");
      }
    }
  }
  return Ok{};
}

Status ModelReader::finish() {
  if (!has_trainer_spec_ || !has_normalizer_spec_) {
    return bad(std::string(has_trainer_spec_ ? "normalizer_spec" : "trainer_spec") +
               " is missing; expected a whole SentencePiece model");
  }
  if (model_type_ != 1 && model_type_ != 2) {
    return unsupported("trainer_spec.model_type is " + std::to_string(model_type_) +
                       "; expected 1 (unigram) or 2 (BPE)");
  }
  if (spec_.unknown_id < 0) {
    return bad("no piece is the unknown one; expected exactly one");
  }
  spec_.model =
      model_type_ == 1 ? SentencePieceSpec::Model::kUnigram : SentencePieceSpec::Model::kBpe;
  for (const AddedToken& token : spec_.base.added_tokens) {
    if (token.id == bos_id_ && token.id != spec_.unknown_id) {
      spec_.base.bos_id = token.id;
      spec_.base.bos_token = token.content;
    }
  }
  return Ok{};
}

Result<SentencePieceSpec> ModelReader::read(std::string_view bytes) {
  WireReader reader(bytes, file_);
  while (!reader.done()) {
    TIDEKV_ASSIGN(const WireField field, reader.next());
    if (field.number == kPieces) {
      TIDEKV_TRY(reader.expect(field, Kind::kBytes, "pieces"));
      TIDEKV_TRY(read_piece(field.bytes));
    } else if (field.number == kTrainerSpec) {
      TIDEKV_TRY(reader.expect(field, Kind::kBytes, "trainer_spec"));
      TIDEKV_TRY(read_trainer_spec(field.bytes));
    } else if (field.number == kNormalizerSpec) {
      TIDEKV_TRY(reader.expect(field, Kind::kBytes, "normalizer_spec"));
      TIDEKV_TRY(read_normalizer_spec(field.bytes));
    }
  }
  TIDEKV_TRY(finish());
  return std::move(spec_);
}

}  // namespace

bool is_sentencepiece_model(std::string_view bytes) {
  constexpr char kFirstPiece = '\x0A';  // field 1, bytes
  return !bytes.empty() && bytes.front() == kFirstPiece;
}

Result<SentencePieceSpec> read_sentencepiece_model(std::string_view bytes,
                                                   const std::string& file) {
  if (bytes.size() > kMaxFileBytes) {
    return Error{ErrorCode::kBadFile, file + ": " + std::to_string(bytes.size()) +
                                          " bytes; expected at most " +
                                          std::to_string(kMaxFileBytes)};
  }
  return ModelReader(file).read(bytes);
}

}  // namespace tidekv
