#include "gguf/gguf_writer.h"

namespace tidekv::gguf {
namespace {

template <typename T>
std::string numbers(const std::vector<T>& values) {
  std::string out;
  for (const T value : values) {
    out += number(value);
  }
  return out;
}

// All of a description but the offset.
std::string described(const std::string& name, const std::vector<std::uint64_t>& dims,
                      std::uint32_t type) {
  return string(name) + number(static_cast<std::uint32_t>(dims.size())) + numbers(dims) +
         number(type);
}

}  // namespace

std::string string(const std::string& text) {
  return number(static_cast<std::uint64_t>(text.size())) + text;
}

std::string header(std::uint32_t version, std::uint64_t num_tensors, std::uint64_t num_fields) {
  return "GGUF" + number(version) + number(num_tensors) + number(num_fields);
}

std::string field(const std::string& key, std::uint32_t type, const std::string& value) {
  return string(key) + number(type) + value;
}

std::string array(std::uint32_t element_type, std::uint64_t count, const std::string& elements) {
  return number(element_type) + number(count) + elements;
}

std::string description(const std::string& name, const std::vector<std::uint64_t>& dims,
                        std::uint32_t type, std::uint64_t offset) {
  return described(name, dims, type) + number(offset);
}

std::string padded(std::string bytes, std::size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
  return bytes;
}

std::uint32_t type_id(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ40:
      return 2;
    case DType::kQ41:
      return 3;
    case DType::kQ50:
      return 6;
    case DType::kQ51:
      return 7;
    case DType::kQ80:
      return 8;
    case DType::kQ4K:
      return 12;
    case DType::kQ5K:
      return 13;
    case DType::kQ6K:
      return 14;
    case DType::kI32:
      return 26;
    case DType::kBF16:
      return 30;
  }
  return 0;
}

GgufWriter& GgufWriter::field(const std::string& key, std::uint32_t type,
                              const std::string& value) {
  fields_ += gguf::field(key, type, value);
  ++num_fields_;
  return *this;
}

GgufWriter& GgufWriter::uint16(const std::string& key, std::uint16_t value) {
  return field(key, kUint16, number(value));
}

GgufWriter& GgufWriter::uint32(const std::string& key, std::uint32_t value) {
  return field(key, kUint32, number(value));
}

GgufWriter& GgufWriter::int32(const std::string& key, std::int32_t value) {
  return field(key, kInt32, number(value));
}

GgufWriter& GgufWriter::float32(const std::string& key, float value) {
  return field(key, kFloat32, number(value));
}

GgufWriter& GgufWriter::boolean(const std::string& key, bool value) {
  return field(key, kBool, number(static_cast<std::uint8_t>(value ? 1 : 0)));
}

GgufWriter& GgufWriter::string(const std::string& key, const std::string& value) {
  return field(key, kString, gguf::string(value));
}

GgufWriter& GgufWriter::strings(const std::string& key, const std::vector<std::string>& values) {
  std::string elements;
  for (const std::string& value : values) {
    elements += gguf::string(value);
  }
  return field(key, kArray, array(kString, values.size(), elements));
}

GgufWriter& GgufWriter::int32s(const std::string& key, const std::vector<std::int32_t>& values) {
  return field(key, kArray, array(kInt32, values.size(), numbers(values)));
}

GgufWriter& GgufWriter::float32s(const std::string& key, const std::vector<float>& values) {
  return field(key, kArray, array(kFloat32, values.size(), numbers(values)));
}

GgufWriter& GgufWriter::alignment(std::uint32_t bytes) {
  alignment_ = bytes;
  return uint32("general.alignment", bytes);
}

GgufWriter& GgufWriter::tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                               DType dtype, const std::string& data) {
  const std::vector<std::uint64_t> dims(shape.rbegin(), shape.rend());
  tensors_.emplace_back(described(name, dims, type_id(dtype)), data);
  return *this;
}

std::string GgufWriter::file() const {
  std::string out = header(version_, tensors_.size(), num_fields_) + fields_;
  std::string all_data;
  for (const auto& [description, data] : tensors_) {
    all_data = padded(std::move(all_data), alignment_);
    out += description + number(static_cast<std::uint64_t>(all_data.size()));
    all_data += data;
  }
  return padded(std::move(out), alignment_) + all_data;
}

}  // namespace tidekv::gguf
