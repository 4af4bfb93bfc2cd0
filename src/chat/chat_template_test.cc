#include "chat/chat_template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace tidekv {
namespace {

Result<RenderedChat> render(std::string_view source, std::vector<ChatMessage> messages = {},
                            const ChatOptions& options = {}) {
  TIDEKV_ASSIGN(const ChatTemplate parsed, ChatTemplate::parse(source, "t.jinja"));
  return parsed.render(messages, options);
}

std::string text_of(std::string_view source, const std::string& content) {
  const auto chat = render(source, {{"user", content}});
  EXPECT_TRUE(chat.ok()) << source << ": " << chat.error().message;
  return chat.ok() ? chat.value().text : "";
}

// The text with every range in angle brackets.
std::string marked(std::string_view source, const std::string& content) {
  const auto chat = render(source, {{"user", content}});
  EXPECT_TRUE(chat.ok()) << source << ": " << chat.error().message;
  std::string out;
  std::size_t done = 0;
  if (chat.ok()) {
    for (const TextRange& range : chat.value().user_ranges) {
      out += chat.value().text.substr(done, range.begin - done) + "<";
      out += chat.value().text.substr(range.begin, range.end - range.begin) + ">";
      done = range.end;
    }
    out += chat.value().text.substr(done);
  }
  return out;
}

TEST(ChatTemplate, MarksFollowTheContentThroughEveryOperation) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ c }}", "<aXb>"},
      {"-{{ c }}-", "-<aXb>-"},
      {"{{ '[' + c + ']' }}", "[<aXb>]"},
      {"{{ '[' ~ c ~ ']' ~ c ~ c }}", "[<aXb>]<aXbaXb>"},
      {"{{ c * 2 }}", "<aXbaXb>"},
      {"{{ (' ' + c + ' ') | trim }}", "<aXb>"},
      {"{{ ('--' + c).strip('-') }}", "<aXb>"},
      {"{{ ('0' + c + '1')[1:3] }}{{ c[-1] }}", "<aXb>"},
      {"{{ ('0' + c + '1')[::-1] }}", "1<bXa>0"},
      {"{{ c.split('X') | join('X') }}", "<a>X<b>"},
      {"{{ c | replace('X', '--') }}", "<a>--<b>"},
      {"{{ 'pXq' | replace('X', c) }}", "p<aXb>q"},
      {"{{ c | upper }}{{ c | title }}", "<AXBAxb>"},
      {"{{ ('<' + c) | tojson }}", "\"<<aXb>\""},
      {"{{ [c, 'd'] | tojson }}", "[\"<aXb>\", \"d\"]"},
      {"{{ {'k': c} | tojson(indent=1) }}", "{\n \"k\": \"<aXb>\"\n}"},
      {"{{ c | list | join('.') }}", "<a>.<X>.<b>"},
      {"{{ c | reverse }}", "<bXa>"},
      {"{{ ('x\n' + c) | indent(2) }}", "x\n  <aXb>"},
      {"{% for ch in c %}{{ ch }},{% endfor %}", "<a>,<X>,<b>,"},
      {"{% set b %}[{{ c }}]{% endset %}{{ b }}", "[<aXb>]"},
      {"{% macro m(x) %}({{ x }}){% endmacro %}{{ m(c) }}", "(<aXb>)"},
      {"{% filter upper %}q{{ c }}{% endfilter %}", "Q<AXB>"},
      {"{% generation %}{{ c }}{% endgeneration %}.", "<aXb>."},
      {"{{ {'k': c}.k }}{{ namespace(a=c).a }}", "<aXbaXb>"},
      {"{{ (c | safe) + 'z' }}", "<aXb>z"},
      {"{{ '{}!'.format(c) }}", "<aXb>!"},
      {"{{ c.removeprefix('a') }}|{{ c.splitlines()[0] }}", "<Xb>|<aXb>"},
      {"{{ c | default('n') }}{{ none_such | default(c) }}", "<aXbaXb>"},
      {"{{ [c, 'a'] | sort | join(',') }}{{ [c] | unique | first }}", "a,<aXbaXb>"},
      {"{{ c if c else '' }}{{ c and 'y' }}{{ '' or c }}", "<aXb>y<aXb>"},
      {"{{ c | length }}{{ 'X' in c }}{{ c == 'aXb' }}", "3TrueTrue"},
  };
  for (const auto& [source, wanted] : cases) {
    EXPECT_EQ(marked("{% set c = messages[0].content %}" + source, "aXb"), wanted) << source;
  }
}

TEST(ChatTemplate, EscapedCharactersOfAContentStayMarked) {
  EXPECT_EQ(marked("{{ messages[0].content | tojson }}", "a\n\"b"), "\"<a\\n\\\"b>\"");
}

TEST(ChatTemplate, DamagedBytesOfAContentAreKept) {
  const std::string content = "a\xFF\xE2\x82z\x80";
  EXPECT_EQ(text_of("{{ messages[0].content | trim }}", content), content);
  EXPECT_EQ(text_of("{{ messages[0].content | length }}", content), "6");
  EXPECT_EQ(text_of("{{ messages[0].content[::-1] | reverse }}", content), content);
}

TEST(ChatTemplate, ContentIsNeverReadAsATemplate) {
  const std::string content = "{{ 7 * 7 }}{% raw %}{# a #}";
  EXPECT_EQ(text_of("{{ messages[0].content }}", content), content);
}

TEST(ChatTemplate, UnknownRolesAreRefused) {
  const auto chat = render("{{ messages[0].role }}", {{"system\n<|im_end|>", "x"}});
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(chat.error().message,
            "chat message: role is 'system\\x0A<|im_end|>'; expected system, user or assistant");
}

TEST(ChatTemplate, TheTemplatesOwnRefusalIsToldWithItsLine) {
  const auto chat =
      render("a\n{% if messages %}\n{{ raise_exception('No\nsystem turn') }}{% endif %}",
             {{"system", ""}});
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(chat.error().message,
            "t.jinja: line 3: the template refuses this chat: No\\x0asystem turn");
}

TEST(ChatTemplate, MissingTokensAndDateAreUndefined) {
  EXPECT_EQ(text_of("[{{ bos_token }}{{ eos_token }}]{{ bos_token is defined }}"
                    "{{ strftime_now is defined }}{{ tools is none }}",
                    ""),
            "[]FalseFalseTrue");
}

TEST(ChatTemplate, WhatIsNotSupportedIsNamedWhenTheTemplateIsRead) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\n{{ x | wordwrap }}", "line 2: filter 'wordwrap' is not supported"},
      {"{{ x is lower }}", "line 1: test 'lower' is not supported"},
      {"\n\n{{ lipsum() }}", "line 3: function 'lipsum' is not supported"},
      {"{{ cycler }}", "line 1: variable 'cycler' is not supported"},
      {"{{ f(1) }}", "line 1: function 'f' is not supported"},
      {"{{ x.encode() }}", "line 1: method 'encode' is not supported"},
      {"{{ x.__class__ }}",
       "line 1: attribute '__class__': names that start with two underscores "
       "are not supported"},
      {"{{ x.__class__.__mro__ }}", "attribute '__class__'"},
      {"{{ self }}", "variable 'self' is not supported"},
      {"{% include 'a' %}", "line 1: tag 'include' is not supported"},
      {"{% import 'os' as os %}", "tag 'import' is not supported"},
      {"{% extends 'a' %}", "tag 'extends' is not supported"},
      {"{% do x %}", "tag 'do' is not supported"},
      {"{% call f() %}{% endcall %}", "tag 'call' is not supported"},
      {"{% for a in b recursive %}{% endfor %}", "recursive loops are not supported"},
      {"{{ f(*a) }}", "arguments unpacked with * are not supported"},
      {"{{ f(**a) }}", "arguments unpacked with ** are not supported"},
      {"{{ (f)(1)(2) }}", "only functions, macros and methods can be called"},
      {"{{ x | map('wordwrap') }}", "filter 'wordwrap' is not supported"},
      {"{{ x | selectattr('a', 'lower') }}", "test 'lower' is not supported"},
      {"{{ x | trim(1, 2) }}", "filter 'trim': takes at most 1 arguments"},
      {"{{ x | replace('a') }}", "filter 'replace': needs argument 'new'"},
      {"{{ x | tojson(bad=1) }}", "filter 'tojson': takes no argument 'bad'"},
      {"{{ '\\N{DASH}' }}", "character names (\\N{...}) in strings are not supported"},
      {"{% set ns = namespace() %}{% set ns.__a = 1 %}", "starts with an underscore"},
      {"{% set loop = 1 %}", "cannot give 'loop' a value"},
      {"{% macro m(a, b=1, c) %}{% endmacro %}", "parameter 'c' needs a default"},
      {"{{ 99999999999999999999 }}", "does not fit 64 bits"},
      {"{{ 1e999 }}", "outside the range of a double"},
  };
  for (const auto& [source, wanted] : cases) {
    const auto parsed = ChatTemplate::parse(source, "t.jinja");
    ASSERT_FALSE(parsed.ok()) << source;
    EXPECT_TRUE(parsed.error().message.starts_with("t.jinja: line ")) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(wanted), std::string::npos) << parsed.error().message;
  }
}

TEST(ChatTemplate, WhatCannotBeDoneExactlyIsRefusedWhenItHappens) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ [1] }}", "a list used as text is not supported"},
      {"{{ '%s' % 1 }}", "formatting text with % is not supported"},
      {"{{ ('a' | safe) + '<' }}", "that it would escape is not supported"},
      {"{{ 'stra\u00DFe' | upper }}", "upper and lower case of '\u00DF' here are not supported"},
      {"{{ '\u65E5' .title() }}", "upper and lower case of '\u65E5'"},
      {"{{ messages.append }}", "list method 'append' used without calling it"},
      {"{{ [1].append(1) }}", "a template must not change a list"},
      {"{{ 'a'['__class__'].x }}", "is undefined"},
      {"{{ 9223372036854775807 + 1 }}", "a number outside 64 bits"},
      {"{{ -9223372036854775807 - 2 }}", "a number outside 64 bits"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "a number outside 64 bits"},
      {"{{ -(-9223372036854775807 - 1) }}", "a number outside 64 bits"},
      {"{{ (-9223372036854775807 - 1) | abs }}", "a number outside 64 bits"},
      {"{{ 3037000500 * 3037000500 }}", "a number outside 64 bits"},
      {"{{ 2 ** 63 }}", "a number outside 64 bits"},
      {"{{ 1e300 * 1e300 }}", "a number outside 64 bits"},
      {"{{ 1e300 | int }}", "a number outside 64 bits"},
      {"{{ '{0}'.format(1) }}", "format() takes {} with an argument for each"},
  };
  for (const auto& [source, wanted] : cases) {
    const auto chat = render(source);
    ASSERT_FALSE(chat.ok()) << source << " gave " << chat.value().text;
    EXPECT_TRUE(chat.error().message.starts_with("t.jinja: line 1: ")) << chat.error().message;
    EXPECT_NE(chat.error().message.find(wanted), std::string::npos) << chat.error().message;
  }
}

std::string repeated(const std::string& text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

struct Hostile {
  const char* what;
  std::string source;
  const char* wanted;
};

std::vector<Hostile> deep_templates() {
  const std::size_t many = 50'000;
  return {
      {"parentheses", "{{ " + repeated("(", many) + "1" + repeated(")", many) + " }}",
       "nested deeper"},
      {"lists", "{{ " + repeated("[", many) + repeated("]", many) + " }}", "nested deeper"},
      {"dicts", "{{ " + repeated("{1:", many) + "1" + repeated("}", many) + " }}", "nested deeper"},
      {"minus", "{{ " + repeated("- ", 50'000) + "1 }}", "nested deeper"},
      {"not", "{{ " + repeated("not ", 50'000) + "1 }}", "nested deeper"},
      {"if", repeated("{% if 1 %}", 20'000), "nested deeper"},
      {"for", repeated("{% for a in b %}", 12'000), "nested deeper"},
      {"set", repeated("{% set a %}", 20'000), "nested deeper"},
      {"else", "{{ " + repeated("1 if 0 else ", 20'000) + "1 }}", "nested deeper"},
      {"sum", "{{ 1" + repeated("+1", 50'000) + " }}", "more than 200 levels"},
      {"and", "{{ 1" + repeated(" and 1", 20'000) + " }}", "more than 200 levels"},
      {"dots", "{{ a" + repeated(".a", 50'000) + " }}", "more than 200 levels"},
      {"subscripts", "{{ a" + repeated("[0]", 50'000) + " }}", "more than 200 levels"},
      {"filters", "{{ a" + repeated("|trim", 40'000) + " }}", "more than 200 levels"},
      {"tests", "{{ a" + repeated(" is string | trim", 10'000) + " }}", "more than 200 levels"},
      {"block filters", "{% filter trim" + repeated("|trim", 40'000) + " %}",
       "more than 200 levels"},
      {"calls",
       "{% macro f() %}{% endmacro %}{{ " + repeated("f(", many) + repeated(")", many) + " }}",
       "nested deeper"},
      {"size", std::string(1 << 20, 'a'), "bytes; expected at most 262144"},
      {"nodes", repeated("{{1}}", 52'000), "the template is too large"},
  };
}

TEST(ChatTemplate, DeepOrLargeTemplatesAreRefused) {
  for (const Hostile& item : deep_templates()) {
    const auto parsed = ChatTemplate::parse(item.source, "t.jinja");
    ASSERT_FALSE(parsed.ok()) << item.what;
    EXPECT_NE(parsed.error().message.find(item.wanted), std::string::npos)
        << item.what << ": " << parsed.error().message;
    EXPECT_LT(parsed.error().message.size(), 500U);
  }
}

std::vector<Hostile> endless_templates() {
  const std::string double_it =
      "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}";
  const std::string nest =
      "{% set ns = namespace(l=[]) %}{% for i in range(90) %}{% set ns.l = [ns.l] %}{% endfor %}";
  return {
      {"loops", repeated("{% for i in range(100000) %}", 5) + "x" + repeated("{% endfor %}", 5),
       "stopped"},
      {"silent loops", repeated("{% for i in range(100000) %}", 3) + repeated("{% endfor %}", 3),
       "stopped"},
      {"doubled text", double_it, "stopped"},
      {"doubled list",
       "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}"
       "{% endfor %}",
       "stopped"},
      {"repeated text", "{{ 'a' * 9223372036854775807 }}", "stopped"},
      {"repeated list", "{{ ([1] * 9223372036854775807) | length }}", "stopped"},
      {"joined aliases", "{% set s = 'a' * 1000000 %}{{ ([s] * 100000) | join }}", "stopped"},
      {"replaced", "{% set s = 'a' * 1000000 %}{{ s | replace('a', s) }}", "stopped"},
      {"json of shared lists",
       "{% set ns = namespace(l=[1]) %}{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}"
       "{% endfor %}{{ ns.l | tojson }}",
       "stopped"},
      {"comparison of shared lists",
       "{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(50) %}"
       "{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}",
       "stopped"},
      {"nested lists", nest, "nests lists deeper"},
      {"nested dicts",
       "{% set ns = namespace(d={}) %}{% for i in range(90) %}{% set ns.d = {1: ns.d} %}"
       "{% endfor %}",
       "nests dicts deeper"},
      {"a macro in itself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deep"},
      {"two macros",
       "{% macro f(n) %}{{ g(n + 1) }}{% endmacro %}{% macro g(n) %}{{ f(n) }}{% endmacro %}"
       "{{ f(0) }}",
       "too deep"},
      {"a tree of macros",
       "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
       "stopped"},
      {"range", "{{ range(1000000000000) | length }}", "range of more than 100000 numbers"},
      {"range over all integers", "{{ range(-9223372036854775807, 9223372036854775807) | length }}",
       "range of more than"},
      {"many ranges",
       "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}"
       "{% set ns.l = ns.l + [range(100000)] %}{% endfor %}",
       "stopped"},
      {"searches",
       "{% set s = 'a' * 4000000 %}{% set p = 'a' * 2000000 + 'b' %}{% for i in range(99999) %}"
       "{{ p in s }}{% endfor %}",
       "stopped"},
      {"equal texts",
       "{% set s = 'a' * 9000000 %}{% set t = 'a' * 9000000 %}{% for i in range(99999) %}"
       "{{ s == t }}{% endfor %}",
       "stopped"},
      {"splits",
       "{% set s = 'a ' * 100000 %}{% for i in range(9999) %}{% set t = s.split() %}{% endfor %}",
       "stopped"},
      {"strips",
       "{% set s = ' ' * 9000000 %}{% for i in range(99999) %}{% set t = s | trim %}{% endfor %}",
       "stopped"},
      {"rfind", "{{ ('a' * 4000000).rfind('b' + 'a' * 2000000) }}", "stopped"},
      {"indentation", "{% set s = 'a\n' * 100000 %}{{ s | indent('b' * 1000000) }}", "stopped"},
      {"unique", "{{ range(100000) | unique | list | length }}", "stopped"},
      {"many variables",
       "{% for i in range(100000) %}{% for j in range(100000) %}{% set k = 'a' ~ j %}{% endfor %}"
       "{% endfor %}",
       "stopped"},
      {"filter chains",
       "{% for i in range(100000) %}{% for j in range(10) %}{{ [i] | map('string') | join }}"
       "{% endfor %}{% endfor %}",
       "stopped"},
      {"power", "{{ 3 ** 9223372036854775807 }}", "outside 64 bits"},
      {"slices", "{% for i in range(99999) %}{% set x = range(99999)[:] %}{% endfor %}", "stopped"},
      {"text slices",
       "{% set s = 'a' * 9000000 %}{% for i in range(99999) %}{{ s[-1] }}{% endfor %}", "stopped"},
  };
}

TEST(ChatTemplate, EndlessTemplatesAreStoppedInBoundedTime) {
  for (const Hostile& item : endless_templates()) {
    const auto start = std::chrono::steady_clock::now();
    const auto chat = render(item.source, {{"user", "x"}});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ASSERT_FALSE(chat.ok()) << item.what;
    EXPECT_NE(chat.error().message.find(item.wanted), std::string::npos)
        << item.what << ": " << chat.error().message;
    EXPECT_LT(seconds.count(), 30.0) << item.what;  // about one, also under sanitizers
  }
}

TEST(ChatTemplate, SourceThatIsNoTextIsRefused) {
  for (const std::string& source :
       {std::string("a\xFF"), std::string("\xE2\x82"), std::string("a\0b", 3),
        std::string("\xED\xA0\x80"), std::string("{{ '\xC0\x80' }}")}) {
    const auto parsed = ChatTemplate::parse(source, "t.jinja");
    ASSERT_FALSE(parsed.ok());
    EXPECT_TRUE(parsed.error().message.ends_with("expected UTF-8 without zero bytes"))
        << parsed.error().message;
  }
}

TEST(ChatTemplate, LongContentsTakeTimeInProportion) {
  const std::string content(4 << 20, 'a');
  const auto chat = render(
      "{% for m in messages %}{{ '<' + m.role + '>' + m.content | trim + '</' }}{% endfor %}",
      {{"system", "s"}, {"user", content}});
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  ASSERT_EQ(chat.value().user_ranges.size(), 2U);
  EXPECT_EQ(chat.value().user_ranges[1].end - chat.value().user_ranges[1].begin, content.size());
}

TEST(ChatTemplate, RunsOnManyMessages) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 2000; ++i) {
    messages.push_back({i % 2 == 0 ? "user" : "assistant", "message " + std::to_string(i)});
  }
  const auto chat = render("{% for m in messages %}{{ m.content }};{% endfor %}", messages);
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  EXPECT_EQ(chat.value().user_ranges.size(), 2000U);
}

}  // namespace
}  // namespace tidekv
