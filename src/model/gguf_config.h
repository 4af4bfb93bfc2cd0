// The hyperparameters a GGUF file states in its metadata.
#pragma once

#include "io/tensor_file.h"
#include "model/config.h"
#include "tidekv/result.h"

namespace tidekv {

// `file` is GGUF. Reads the keys of its architecture, and from the tensors what no key says: tied
// embeddings, biases, RoPE divisors, the vocabulary's size. Any key of the architecture that is not
// known is refused by name: it may change the computation.
Result<ModelConfig> read_gguf_config(const TensorFile& file);

}  // namespace tidekv
