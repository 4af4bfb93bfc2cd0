// Any bytes as a chat template, and what follows a zero byte as a message's content: an error that
// names the template, or a text whose ranges lie in it and in order.
#include "chat/chat_template.h"

#include <array>

#include "base/check.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  const std::size_t zero = input.find('\0');
  const std::string content =
      zero == std::string::npos ? " a\n<b>\xC3\xA9 " : input.substr(zero + 1);
  const auto parsed = tidekv::ChatTemplate::parse(input.substr(0, zero), "t.jinja");
  if (!parsed.ok()) {
    TIDEKV_CHECK(parsed.error().message.starts_with("t.jinja: "));
    return 0;
  }
  tidekv::ChatOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.local_time.emplace();
  options.local_time->tm_mday = 1;
  const std::array<tidekv::ChatMessage, 3> messages = {
      {{"system", content}, {"user", content}, {"assistant", "x" + content}}};
  const auto chat = parsed.value().render(messages, options);
  if (!chat.ok()) {
    TIDEKV_CHECK(chat.error().message.starts_with("t.jinja: line "));
    return 0;
  }
  std::size_t end = 0;
  for (const tidekv::TextRange& range : chat.value().user_ranges) {
    TIDEKV_CHECK(range.begin >= end && range.end > range.begin);
    end = range.end;
  }
  TIDEKV_CHECK(end <= chat.value().text.size());
  return 0;
}
