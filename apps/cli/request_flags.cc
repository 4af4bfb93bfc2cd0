#include "request_flags.h"

#include "output.h"

namespace tidekv::cli {
namespace {

// Positions are 32-bit; no model comes near.
constexpr std::int64_t kMaxTokens = INT32_MAX;

}  // namespace

void add_model_flags(Flags& flags, ModelFlags& model) {
  flags.text({"-m,--model", "PATH", "a GGUF file or a Hugging Face folder"}, model.path);
  flags.on_off("--check-tensors", model.engine.check_tensors,
               "look for NaN and infinity in the weights first");
}

void add_threads_flag(Flags& flags, ModelFlags& model) {
  flags.add({"-t,--threads", "N", "threads; each holds its own kernel scratch"}, "all CPUs",
            [&model](const std::string& text) -> Status {
              TIDEKV_ASSIGN(const std::int64_t value, parse_integer(text, {1, 1024}));
              model.engine.num_threads = static_cast<int>(value);
              return Ok{};
            });
}

Status check_model_flags(const ModelFlags& flags) {
  if (!flags.path) {
    return Error{ErrorCode::kInvalidArgument,
                 "no model; give a GGUF file or a Hugging Face folder with -m PATH"};
  }
  return Ok{};
}

Result<Engine> load_engine(const ModelFlags& flags) {
  TIDEKV_TRY(check_model_flags(flags));
  return Engine::load(*flags.path, flags.engine);
}

// What other programs score with by default, and how they split budgets.
void use_preset(BudgetSplit preset, PrefillOptions& prefill) {
  prefill.budget_split = preset;
  if (preset == BudgetSplit::kKvpress) {
    prefill.window_len = 64;
    prefill.kernel_len = 5;
    prefill.pooling = Pooling::kAverage;
    prefill.unit_len = 20;
  } else if (preset == BudgetSplit::kKvcf) {
    prefill.window_len = 8;
    prefill.kernel_len = 7;
    prefill.pooling = Pooling::kMax;
  }
}

void add_budget_flag(Flags& flags, PrefillOptions& prefill) {
  flags.tokens({"--budget", "K", "tokens kept per layer and KV head, all included"}, prefill.budget,
               {1, kMaxTokens});
}

namespace {

// What is scored, and how the budget is split.
void add_selection_flags(Flags& flags, PrefillOptions& prefill) {
  flags.add(
      {"--preset", "kvpress|kvcf",
       "that program's window and pooling, and how it splits budgets; flags behind change it"},
      "", [&prefill](const std::string& text) -> Status {
        if (text != "kvpress" && text != "kvcf") {
          return Error{ErrorCode::kInvalidArgument, "'" + text + "' is not one of kvpress, kvcf"};
        }
        use_preset(text == "kvcf" ? BudgetSplit::kKvcf : BudgetSplit::kKvpress, prefill);
        return Ok{};
      });
  flags.tokens({"--window", "W", "last tokens: they say what matters, and are always kept"},
               prefill.window_len, {1, kMaxTokens});
  flags.add({"--kernel", "N", "neighbouring tokens pooled together; odd"},
            std::to_string(prefill.kernel_len), [&prefill](const std::string& text) -> Status {
              TIDEKV_ASSIGN(prefill.kernel_len, parse_integer(text, {1, kMaxTokens}));
              if (prefill.kernel_len % 2 == 0) {
                return Error{ErrorCode::kInvalidArgument, "'" + text + "' is even; must be odd"};
              }
              return Ok{};
            });
  flags.choice<Pooling>({"--pool", "max|avg", "how they are pooled"}, prefill.pooling,
                        {{"max", Pooling::kMax}, {"avg", Pooling::kAverage}});
  flags.choice<GroupReduction>(
      {"--group-reduce", "mean|max", "over the query heads that share a KV head"},
      prefill.group_reduction, {{"mean", GroupReduction::kMean}, {"max", GroupReduction::kMax}});
  flags.add({"--sinks", "N", "first tokens, always kept"}, "0; recent, expected: 4",
            [&prefill](const std::string& text) -> Status {
              TIDEKV_ASSIGN(prefill.num_sinks, parse_tokens(text, {0, kMaxTokens}));
              return Ok{};
            });
  flags.real({"--alpha", "X", "adakv: share of a layer's budget that all KV heads get alike"},
             prefill.even_share, {0, 1});
  flags.integer({"--beta", "N", "pyramidkv: the last layer keeps about 1 / N of the average"},
                prefill.steepness, {1, kMaxTokens});
  flags.tokens({"--unit", "N", "chunkkv: neighbouring tokens kept or dropped together"},
               prefill.unit_len, {1, kMaxTokens});
}

void add_quantiser_flags(Flags& flags, PrefillOptions& prefill) {
  flags.add(
      {"--kv-group", "N|auto", "kivi: elements that share a scale; divides the head dimension"},
      "auto: 32 where it does", [&prefill](const std::string& text) -> Status {
        prefill.kv_group_len = 0;
        if (text != "auto") {
          TIDEKV_ASSIGN(prefill.kv_group_len, parse_integer(text, {1, kMaxTokens}));
        }
        return Ok{};
      });
  flags.tokens({"--kv-residual", "R", "kivi: newest tokens kept as they are; whole groups"},
               prefill.kv_residual_len, {1, kMaxTokens});
}

void add_memory_flags(Flags& flags, PrefillOptions& prefill) {
  flags.tokens({"-n,--predict,--n-predict", "N", "most tokens to generate; -1: up to the context"},
               prefill.max_new_tokens, {-1, kMaxTokens});
  flags.tokens({"-c,--ctx-size", "N", "cap on prompt + generated; 0: the model's own"},
               prefill.context_len, {0, kMaxTokens});
  flags.on_off("--beyond-context", prefill.beyond_context,
               "let -c exceed the model's context: it never saw such positions");
  flags.add({"--chunk", "N|auto", "prompt tokens run at once"}, "auto",
            [&prefill](const std::string& text) -> Status {
              prefill.chunk_len = 0;
              if (text != "auto") {
                TIDEKV_ASSIGN(prefill.chunk_len, parse_tokens(text, {1, kMaxTokens}));
              }
              return Ok{};
            });
  flags.tokens({"--key-block", "N", "keys scored at once; never changes what is kept"},
               prefill.key_block_len, {1, kMaxTokens});
  flags.add({"--mlp-tile", "N|auto", "prompt tokens inside the MLP at once; never changes numbers"},
            "auto: 256; methods that run the whole prompt at once: all of it",
            [&prefill](const std::string& text) -> Status {
              prefill.mlp_tile_len = 0;
              if (text != "auto") {
                TIDEKV_ASSIGN(prefill.mlp_tile_len, parse_tokens(text, {1, kMaxTokens}));
              }
              return Ok{};
            });
  flags.bytes(
      {"--memory-limit", "SIZE", "refuse what needs more, weights included: 8G, 512M, 1.5GiB"},
      prefill.memory_limit_bytes);
  flags.bytes({"--pool-limit", "SIZE", "headinfer: refuse what needs a larger offload pool"},
              prefill.pool_limit_bytes);
  flags.choice<AttentionImplementation>(
      {"--attention", "flash|masked|eager", "what it holds: nothing, the chunk's mask, all scores"},
      prefill.attention,
      {{"flash", AttentionImplementation::kFlash},
       {"masked", AttentionImplementation::kMasked},
       {"eager", AttentionImplementation::kEager}});
  flags.choice<ComputeType>(
      {"--dtype", "auto|bf16|f32", "type of activations and cache"}, prefill.compute_type,
      {{"auto", ComputeType::kAuto}, {"bf16", ComputeType::kBF16}, {"f32", ComputeType::kF32}});
  flags.on_off("--all-rows", prefill.all_rows, "run every row through the last layer");
}

}  // namespace

void add_prefill_flags(Flags& flags, PrefillOptions& prefill) {
  flags.group("Cache");
  add_selection_flags(flags, prefill);
  add_quantiser_flags(flags, prefill);
  flags.group("Memory");
  add_memory_flags(flags, prefill);
}

void add_sampling_flags(Flags& flags, SamplingFlags& sampling) {
  SamplingOptions& options = sampling.options;
  flags.real({"--temp", "X", "temperature; 0: always the likeliest token"}, options.temperature,
             {0, 100});
  flags.integer({"--top-k", "N", "of the N likeliest; 0: off"}, options.top_k, {0, INT32_MAX});
  flags.real({"--top-p", "X", "of the likeliest that together make up X; 1: off"}, options.top_p,
             {0, 1});
  flags.real({"--min-p", "X", "of those at least X times as likely as the first; 0: off"},
             options.min_p, {0, 1});
  flags.real({"--repeat-penalty", "X", "above 1 discourages repetition; 1: off"},
             options.repeat_penalty, {0.01, 100});
  flags.integer({"--repeat-last-n", "N", "tokens it looks back; -1: all"}, options.repeat_last_n,
                {-1, INT32_MAX});
  flags.integer({"-s,--seed", "N", "-1: a new one each time"}, options.seed, {-1, INT64_MAX});
  flags.on_off("--ignore-eos", sampling.ignore_eos, "do not stop at the end-of-text token");
}

bool ReportFlags::json() const {
  const bool named_json = file && file->ends_with(".json");
  return format == ReportFormat::kJson || (format == ReportFormat::kByFileName && named_json);
}

void add_report_flags(Flags& flags, ReportFlags& report) {
  flags.group("Report");
  flags.choice<ReportFormat>({"--report", "text|json", "form of the report"}, report.format,
                             {{"text", ReportFormat::kText}, {"json", ReportFormat::kJson}});
  flags.text({"--report-file", "FILE", "put it there (JSON if the name ends in .json)"},
             report.file);
  flags.text({"--timeline", "FILE", "every change of device memory, as CSV"}, report.timeline_file);
}

Status check_report_paths(const ReportFlags& report, const ModelFlags& model,
                          const PromptFlags& prompt) {
  std::vector<std::string> inputs;
  for (const auto& path : {model.path, prompt.file, prompt.tokens}) {
    if (path) {
      inputs.push_back(*path);
    }
  }
  TIDEKV_TRY(check_not_an_input("--report-file", report.file, inputs));
  return check_not_an_input("--timeline", report.timeline_file, inputs);
}

Result<OutputFiles> open_reports(const ReportFlags& report) {
  return open_outputs({"--report-file", report.file}, {"--timeline", report.timeline_file});
}

}  // namespace tidekv::cli
