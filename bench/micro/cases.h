// One case for every operation of backend/backend.h and every shape worth knowing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"

namespace tidekv::micro {

// An operation with its operands in place.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  // Once; `call` counts up, so that operands can take turns.
  virtual void run(std::int64_t call) = 0;
};

// What one call must do, as the formula has it; 0: not a limit of this case.
struct Cost {
  double flops = 0;
  double bytes = 0;  // operands read once and results written once
};

struct Case {
  std::string name;  // operation/rows/shape/types
  Cost cost;
  std::function<std::unique_ptr<Operation>(Device&)> prepare;
};

// body(operands, call) as an operation that owns its operands.
template <typename Operands, typename Body>
std::unique_ptr<Operation> operation(Operands operands, Body body) {
  class Bound final : public Operation {
   public:
    Bound(Operands owned, Body called) : operands_(std::move(owned)), body_(std::move(called)) {}
    void run(std::int64_t call) override { body_(operands_, call); }

   private:
    Operands operands_;
    Body body_;
  };
  return std::make_unique<Bound>(std::move(operands), std::move(body));
}

void add_matmul_cases(std::vector<Case>& cases);
void add_attention_cases(std::vector<Case>& cases);
void add_compression_cases(std::vector<Case>& cases);
void add_layer_cases(std::vector<Case>& cases);

}  // namespace tidekv::micro
