#include "engine/chat_source.h"

#include <ctime>
#include <string_view>
#include <utility>

#include "chat/chat_template_file.h"

namespace tidekv {
namespace {

// The text of the token that a tokenizer.ggml field names; empty: none.
std::string token_named(const ModelSource& source, std::string_view field) {
  const FieldReader fields = source.model.file.metadata()->reader();
  const std::string key = "tokenizer.ggml." + std::string(field);
  const auto id = fields.integer(key, {0, source.tokenizer->vocab_size() - 1});
  return id.ok() ? std::string(source.tokenizer->token_text(static_cast<std::int32_t>(id.value())))
                 : "";
}

Result<ChatTemplateSource> gguf_template(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  TIDEKV_ASSIGN(std::string text,
                metadata.reader().string(kKey,
                                         "the model's chat template; this model has none, "
                                         "give it a plain prompt"));
  return ChatTemplateSource{std::move(text), metadata.file + ": " + std::string(kKey)};
}

std::tm local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return local;
}

}  // namespace

Result<ChatSource> read_chat_source(const std::string& path, const ModelSource& source) {
  ChatOptions options;
  ChatTemplateSource found;
  if (source.model.is_gguf()) {
    TIDEKV_ASSIGN(found, gguf_template(*source.model.file.metadata()));
    options.bos_token = token_named(source, "bos_token_id");
    options.eos_token = token_named(source, "eos_token_id");
    options.unk_token = token_named(source, "unknown_token_id");
    options.pad_token = token_named(source, "padding_token_id");
  } else {
    TIDEKV_ASSIGN(found, read_chat_template(path));
    TIDEKV_ASSIGN(const SpecialTokenTexts texts, read_special_token_texts(path));
    options.bos_token = texts.bos_token;
    options.eos_token = texts.eos_token;
    options.unk_token = texts.unk_token;
    options.pad_token = texts.pad_token;
  }
  options.local_time = local_time_now();
  TIDEKV_ASSIGN(ChatTemplate chat_template, ChatTemplate::parse(found.source, found.where));
  return ChatSource{std::move(chat_template), std::move(options)};
}

}  // namespace tidekv
