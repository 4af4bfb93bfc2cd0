#include "io/gguf_tensor_reader.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "base/json_value.h"
#include "io/gguf_tensor_type.h"

namespace tidekv {
namespace {

constexpr std::uint64_t kMaxTensors = 65536;
constexpr std::size_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // of a description: one dimension
constexpr std::size_t kMaxNameBytes = 64;                       // the format's own limit
constexpr std::uint32_t kMaxDims = 4;                           // the format's own limit

// The floating-point values inside (of a block, its scales) are read where they stand.
std::int64_t address_multiple(DType dtype) { return is_quantised(dtype) ? 2 : size_of(dtype); }

// A tensor as the file describes it.
struct Description {
  std::string_view name;
  std::vector<std::int64_t> shape;  // outermost first
  GgufTensorType type;
  std::uint64_t offset = 0;  // into the data section
};

// One tensor's place in the data section, whatever its type.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string_view name;
};

class TensorReader {
 public:
  TensorReader(ByteReader& bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Status read_descriptions(std::uint64_t count);
  // After the last description: where the data are.
  Status place(std::int64_t alignment, GgufTensors& out);

 private:
  Result<Description> read_description(std::uint64_t number, std::uint64_t count);
  Result<std::vector<std::int64_t>> read_shape(const std::string& place);
  Result<std::int64_t> bytes_of(const Description& tensor) const;
  Result<Range> range_of(const Description& tensor, std::int64_t alignment) const;
  Status check_overlap();
  Error bad(const std::string& place, const std::string& what) const {
    return Error{ErrorCode::kBadFile, file_ + ": " + place + ": " + what};
  }
  Error bad_tensor(std::string_view name, const std::string& what) const {
    return bad("tensor " + in_quotes(name), what);
  }
  Error cut_off(const std::string& place) const {
    return bad(place, "its description goes on after byte " + std::to_string(bytes_.all().size()) +
                          ", the file's end; expected a complete file");
  }

  ByteReader& bytes_;
  const std::string& file_;
  std::int64_t data_start_ = 0;  // byte of the file
  std::vector<Description> tensors_;
  std::vector<Range> ranges_;
};

Status TensorReader::read_descriptions(std::uint64_t count) {
  if (count > std::min<std::uint64_t>(kMaxTensors, bytes_.left() / kMinTensorBytes)) {
    return Error{ErrorCode::kBadFile, file_ + ": the header counts " + std::to_string(count) +
                                          " tensors; expected at most " +
                                          std::to_string(kMaxTensors) + ", and no more than the " +
                                          std::to_string(bytes_.left()) +
                                          " bytes after the metadata describe"};
  }
  tensors_.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    TIDEKV_ASSIGN(Description tensor, read_description(i + 1, count));
    tensors_.push_back(std::move(tensor));
  }
  return Ok{};
}

Result<Description> TensorReader::read_description(std::uint64_t number, std::uint64_t count) {
  std::string place = "tensor " + std::to_string(number) + " of " + std::to_string(count);
  const auto name_bytes = ByteReader(bytes_).value<std::uint64_t>();
  if (name_bytes && (*name_bytes == 0 || *name_bytes > kMaxNameBytes)) {
    return bad(place, "its name has " + std::to_string(*name_bytes) + " bytes; expected 1 to " +
                          std::to_string(kMaxNameBytes));
  }
  const auto name = bytes_.string();
  if (!name) {
    return cut_off(place);
  }
  place = "tensor " + in_quotes(*name);
  TIDEKV_ASSIGN(std::vector<std::int64_t> shape, read_shape(place));
  const auto type = bytes_.value<std::uint32_t>();
  const auto offset = bytes_.value<std::uint64_t>();
  if (!type || !offset) {
    return cut_off(place);
  }
  return Description{*name, std::move(shape), gguf_tensor_type(*type), *offset};
}

Result<std::vector<std::int64_t>> TensorReader::read_shape(const std::string& place) {
  const auto num_dims = bytes_.value<std::uint32_t>();
  if (!num_dims) {
    return cut_off(place);
  }
  if (*num_dims == 0 || *num_dims > kMaxDims) {
    return bad(place, "it has " + std::to_string(*num_dims) + " dimensions; expected 1 to " +
                          std::to_string(kMaxDims));
  }
  std::vector<std::int64_t> shape(*num_dims);
  for (std::size_t i = shape.size(); i-- > 0;) {  // the file begins with the innermost
    const auto dim = bytes_.value<std::uint64_t>();
    if (!dim) {
      return cut_off(place);
    }
    if (*dim == 0 || *dim > INT64_MAX) {
      return bad(place, "a dimension is " + std::to_string(*dim) + "; expected 1 to " +
                            std::to_string(INT64_MAX));
    }
    shape[i] = static_cast<std::int64_t>(*dim);
  }
  return shape;
}

std::string spelled(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (const std::int64_t dim : shape) {
    out += (out.size() == 1 ? "" : ", ") + std::to_string(dim);
  }
  return out + "]";
}

Result<std::int64_t> TensorReader::bytes_of(const Description& tensor) const {
  const std::string of_type = " of type " + name_of(tensor.type);
  std::optional<std::int64_t> elements = 1;
  for (const std::int64_t dim : tensor.shape) {
    elements = elements ? checked_mul(*elements, dim) : elements;
  }
  const bool known = tensor.type.block_len > 0;
  if (known && tensor.shape.back() % tensor.type.block_len != 0) {
    return bad_tensor(tensor.name, "a row of " + std::to_string(tensor.shape.back()) + " elements" +
                                       of_type + "; expected a multiple of " +
                                       std::to_string(tensor.type.block_len));
  }
  const std::int64_t blocks = elements && known ? *elements / tensor.type.block_len : 1;
  const auto needed = checked_mul(blocks, tensor.type.block_bytes);
  if (!elements || !needed) {
    return bad_tensor(tensor.name, "shape " + spelled(tensor.shape) + of_type +
                                       " takes more than 2^63 bytes; expected a shape that fits "
                                       "the file");
  }
  return *needed;
}

Result<Range> TensorReader::range_of(const Description& tensor, std::int64_t alignment) const {
  TIDEKV_ASSIGN(const std::int64_t needed, bytes_of(tensor));
  const std::string offset = std::to_string(tensor.offset);
  if (tensor.offset % static_cast<std::uint64_t>(alignment) != 0) {
    return bad_tensor(tensor.name, "its offset is " + offset + "; expected a multiple of " +
                                       std::to_string(alignment) + ", the alignment");
  }
  const auto file_bytes = static_cast<std::int64_t>(bytes_.all().size());
  const std::int64_t data_bytes = std::max<std::int64_t>(file_bytes - data_start_, 0);
  if (std::cmp_greater(tensor.offset, data_bytes) ||
      needed > data_bytes - static_cast<std::int64_t>(tensor.offset)) {
    const auto begin = std::in_range<std::int64_t>(tensor.offset)
                           ? checked_add(data_start_, static_cast<std::int64_t>(tensor.offset))
                           : std::nullopt;
    const auto end = begin ? checked_add(*begin, needed) : std::nullopt;
    return bad_tensor(tensor.name, std::to_string(needed) + " bytes at offset " + offset + " of " +
                                       "the data end at byte " +
                                       (end ? std::to_string(*end) : "2^63 or later") +
                                       ", but the file has " + std::to_string(file_bytes) +
                                       " bytes; expected a complete file");
  }
  const auto begin = static_cast<std::int64_t>(tensor.offset);
  return Range{begin, begin + needed, tensor.name};
}

Status TensorReader::place(std::int64_t alignment, GgufTensors& out) {
  data_start_ = round_up(static_cast<std::int64_t>(bytes_.position()), alignment);
  for (Description& tensor : tensors_) {
    const std::string name(tensor.name);
    if (out.usable.contains(name) || out.other_dtypes.contains(name)) {
      return bad_tensor(name, "it appears twice; expected each name once");
    }
    TIDEKV_ASSIGN(const Range range, range_of(tensor, alignment));
    ranges_.push_back(range);
    if (!tensor.type.dtype) {
      out.other_dtypes.emplace(name, name_of(tensor.type));
      continue;
    }
    const DType dtype = *tensor.type.dtype;
    const std::int64_t begin = data_start_ + range.begin;
    if (begin % address_multiple(dtype) != 0) {
      return bad_tensor(name, "data begins at byte " + std::to_string(begin) +
                                  " of the file; expected a multiple of " +
                                  std::to_string(address_multiple(dtype)));
    }
    out.usable.emplace(name, TensorInfo{name, dtype, std::move(tensor.shape),
                                        bytes_.all().data() + begin, range.end - range.begin});
  }
  return check_overlap();
}

Status TensorReader::check_overlap() {
  std::ranges::sort(ranges_, {}, &Range::begin);
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    const Range& before = ranges_[i - 1];
    if (ranges_[i].begin < before.end) {
      return bad_tensor(ranges_[i].name, "data begins at offset " +
                                             std::to_string(ranges_[i].begin) +
                                             ", inside that of tensor " + in_quotes(before.name) +
                                             ", which ends at " + std::to_string(before.end) +
                                             "; expected no overlap");
    }
  }
  return Ok{};
}

}  // namespace

Status read_gguf_tensors(ByteReader& bytes, const GgufTensorSection& section,
                         const std::string& file, GgufTensors& out) {
  TensorReader reader(bytes, file);
  TIDEKV_TRY(reader.read_descriptions(section.count));
  return reader.place(section.alignment, out);
}

}  // namespace tidekv
