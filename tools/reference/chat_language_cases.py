"""One short template for each feature of the template language, rendered with LANGUAGE_CHAT."""

LANGUAGE_CHAT = [
    {"role": "system", "content": " Sys "},
    {"role": "user", "content": "Hällo <b>&"},
    {"role": "assistant", "content": "x y\nz"},
]

WHITE_SPACE = [
    "", "\n", "a\n", "a\n\n", "a\r\nb\rc", "  {% if true %}\n  x\n  {% endif %}\n  y",
    "  {%+ if true %}\n  x\n  {%+ endif %}\n  y", "a  {%- if true -%}  \n b \n {%- endif -%} c",
    "a {%- if true +%}\nb{% endif %}", "a\n  {# note #}\n  b", "a\n  {#- note -#}\n  b",
    "a {#+ note +#}\n b", "  {{ 1 }}  \n  {{- 2 -}}  \n  {{ 3 }}", "{% if true %}\n\n a{% endif %}",
    "x {% if true %} y {% endif %} z", "x\n\t {% if true %}\t y {% endif %}\n z",
    "{% raw %}\n{{ a }} {% if %} {# c #}\n  {% endraw %}\n b", "{%- raw -%}  {{ x }}  {%- endraw -%}  y",
    "{% raw %}{% endraw %}", "{{ '}}' }}{{ '%}' }}{{ {'a': {'b': 1}}['a']['b'] }}", "{ { } } {a} }}",
    "{{1}}{{2}}\n{{3}}\n", "  {{ '' }}\n  {% set a = 1 %}\n  {{ a }}", "\u00a0{%- if true %}\u2003{%- endif %}.",
    "a\n   {% set x = 1 %}   \nb", "{% set x = 1 %}   {% set y = 2 %}\n{{ x }}{{ y }}",
    "a\x1c{%- if true %}b{% endif %}", "{#- a -#}\n {#- b -#}\n c", "a{{- '' }} {{ '' -}} b",
    "{% if true -%}\n\n  a\n\n{%- endif %}", "{{ 'a' -}}\n  {% if true %}b{% endif %}",
]

LITERALS = [
    "{{ 'a\\nb\\t\\'\\\"\\\\' }}", "{{ \"\\x41\\u00e9\\U0001F600\\101\\q\" }}", "{{ 'a' \"b\" 'c' }}",
    "{{ 1_000 }} {{ 0 }} {{ 00 }} {{ 1.5 }} {{ 1e3 }} {{ 2.5e-7 }} {{ 1_0.2_5 }}", "{{ 'line\\\nend' }}",
    "{{ 'two\nlines' }}", "{{ true }} {{ True }} {{ false }} {{ none }} {{ None }}", "{{ 'é日' }}",
    "{{ [1, 'a', none,] | tojson }} {{ (1,) | tojson }} {{ () | tojson }} {{ {} | tojson }}",
    "{{ {'a': 1, \"b\": [2, 3], 3: none, 'a': 4} | tojson }}", "{{ 1e16 }} {{ 123456789.0 }} {{ 0.1 }} {{ 1e-5 }} {{ 100.0 }}",
    "{{ 1e22 }} {{ 1.0 }} {{ -0.0 }} {{ 1234567890123456.7 }} {{ 0.0001 }} {{ 3.0e-10 }}",
]

OPERATORS = [
    "{{ 7 + 3 }} {{ 7 - 3 }} {{ 7 * 3 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 2 ** 10 }}",
    "{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 // -2 }} {{ 7 % -3 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }}",
    "{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }} {{ 0 ** 0 }} {{ (-1) ** 3 }} {{ 1.5 ** 2 }}",
    "{{ 1 + 2 * 3 - 4 / 2 }} {{ (1 + 2) * 3 }} {{ 1 - 2 - 3 }} {{ 8 / 4 / 2 }}", "{{ 'a' ~ 1 ~ none ~ 2.5 ~ true ~ x }}",
    "{{ 'a' + 'b' ~ 1 + 2 }}", "{{ 1 ~ 2 * 3 }}", "{{ 'ab' * 3 }} {{ 2 * 'x' }} {{ 'a' * -1 }}|", "{{ ([1] + [2]) | tojson }} {{ ([1, 2] * 2) | tojson }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 1 != 2 }} {{ 'a' == 'a' }}",
    "{{ 'a' < 'b' }} {{ 'Z' < 'a' }} {{ 'é' > 'z' }} {{ [1, 2] < [1, 3] }} {{ (1, 2) == (1, 2) }} {{ [1] == (1,) }}",
    "{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ none == false }} {{ x == y }} {{ x == none }} {{ 1 == '1' }}",
    "{{ 'b' in 'abc' }} {{ '' in 'a' }} {{ 2 in [1, 2] }} {{ 'a' in {'a': 1} }} {{ 1 not in [2] }} {{ 'a' in x }} {{ 2 in range(5) }}",
    "{{ not true }} {{ not not 1 }} {{ not 1 == 2 }} {{ true and false or true }} {{ 0 or 'a' }} {{ '' and 'b' }}|{{ 1 and 2 }}",
    "{{ x or 'd' }} {{ not x }} {{ x and 1 }}|", "{{ 'a' if true }}{{ 'b' if false }}|{{ 'c' if false else 'd' }}",
    "{{ 1 if false else 2 if false else 3 }}", "{{ ('a' if true else 'b') ~ 'c' }}", "{{ 'a' if 1 == 1 and 2 in [2] else 'b' }}",
    "{{ -5 | abs }} {{ -(3) }} {{ +4 }} {{ - -2 }} {{ +true }} {{ -true }}", "{{ true + true }} {{ 1 + 2.5 }} {{ 3 // 2.0 }} {{ 6 / 3 }}",
    "{{ (1, 2)[0] }} {{ 1, 2 }}"[0:16], "{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abc'[5] }}|{{ [1, 2, 3][-2] }} {{ 'é日本'[1] }}",
    "{{ 'abcdef'[1:3] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[::2] }} {{ 'abcdef'[-3:] }} {{ 'abcdef'[:-4] }} {{ 'abcdef'[4:1] }}|{{ 'abc'[5:9] }}|",
    "{{ [1, 2]['b'] }}|{{ {'k': 1}[x] }}|{{ [1][x] }}|{{ x[:1] is defined if x else 'n' }}|{{ 'a'[1.5] }}|{{ {'a': 1}[1] }}|{{ none['a'] }}|{{ 5[0] }}|",
    "{{ 'aé日z'[1:3] }} {{ 'aé日z'[::-1] }} {{ [1, 2, 3, 4][::-2] | tojson }} {{ [1, 2, 3][5:0:-1] | tojson }} {{ [1, 2, 3][-1:-9:-1] | tojson }}",
    "{{ [1, 2, 3][:] | tojson }} {{ [1, 2, 3][none:2] | tojson }} {{ (1, 2, 3)[1:] | tojson }} {{ range(9)[2:8:3] | list | tojson }}",
    "{{ {'a': {'b': 2}}.a.b }} {{ {'a': {'b': 2}}['a'].b }} {{ {'a': 1}.x }}| {{ {'a': 1}['x'] }}| {{ [[1, 2]][0][1] }} {{ [5, 6].1 }}",
    "{{ messages[0].role }} {{ messages[0]['content'] }} {{ messages[-1].role }} {{ messages[0].tool_calls }}| {{ messages[9] }}|",
    "{{ ('a' ~ 'b') | upper }} {{ 'a' ~ 'b' | upper }}", "{{ 'a' | upper ~ 'b' }} {{ 1 + '2' | int }}",
    "{{ 3 is odd and 4 is even }} {{ not 3 is even }} {{ 3 is not even }}", "{{ 'x' is string | string }}",
]

TESTS = [
    "{{ x is defined }} {{ x is undefined }} {{ messages is defined }} {{ messages[0].no is defined }} {{ messages[7] is defined }}",
    "{{ none is none }} {{ x is none }} {{ 0 is none }} {{ tools is none }} {{ documents is none }}",
    "{{ 'a' is string }} {{ 1 is string }} {{ 1 is number }} {{ 1.5 is number }} {{ true is number }} {{ 'a' is number }}",
    "{{ true is boolean }} {{ 1 is boolean }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ 1 is float }}",
    "{{ {} is mapping }} {{ [] is mapping }} {{ messages[0] is mapping }} {{ 'a' is iterable }} {{ [] is iterable }} {{ 1 is iterable }} {{ x is iterable }} {{ none is iterable }}",
    "{{ 'a' is sequence }} {{ [] is sequence }} {{ {} is sequence }} {{ 1 is sequence }} {{ x is sequence }} {{ range(2) is sequence }} {{ ([] | map('upper')) is sequence }}",
    "{{ true is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }} {{ none is false }}",
    "{{ 3 is odd }} {{ 2 is odd }} {{ 2 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ -3 is odd }}",
    "{{ 1 is eq 1 }} {{ 1 is equalto(1) }} {{ 'a' is eq 'b' }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 2 is gt(1) }} {{ 2 is ge 2 }} {{ 2 is le 1 }} {{ 1 is lessthan 2 }} {{ 3 is greaterthan 2 }}",
    "{{ 1 is in [1, 2] }} {{ 'a' is in 'abc' }} {{ 1 is not in [1] }} {{ true is sameas true }} {{ 1 is sameas true }} {{ none is sameas none }}",
    "{{ range is callable }} {{ 1 is callable }} {{ x is callable }} {{ 'a' is escaped }} {{ ('a' | safe) is escaped }}",
    "{{ x is defined and x.y is defined }} {{ x is not defined or x }}", "{% if messages[0].role is string and not messages[0].x is defined %}ok{% endif %}",
]

FILTERS = [
    "{{ ' a b ' | trim }}|{{ 'xxaxx' | trim('x') }}|{{ 5 | trim }}|{{ x | trim }}|{{ '\u00a0a\u2003' | trim }}|", "{{ 'abc' | length }} {{ [1, 2] | count }} {{ {'a': 1} | length }} {{ x | length }} {{ 'é日' | length }}",
    "{{ 'aBc' | upper }} {{ 'aBc' | lower }} {{ 'hello wORLD-foo (bar)' | title }} {{ 'hELLO wORLD' | capitalize }} {{ 12 | upper }}",
    "{{ 'Grüße ÄÖ éà ñ'[:3] | upper }} {{ 'éà ñ ж ÿ ǆ' | upper }} {{ 'ÄÖÜ ÉÀ Ω ЖД' | lower }} {{ 'élan été' | capitalize }} {{ 'ärger über-äöü' | title }}",
    "{{ 'ΑΣ ΑΣΑ Σ ΑΣ. ΑΣ.Α' | lower }} {{ 'ǅ' | upper }} {{ 'ǅ Ⅷ Ⓐ Ꭰ 𐐀' | lower }} {{ 'ⅷ ⓐ ꭰ 𐐨 ჰ' | upper }}",
    "{{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ 'abc' | first }} {{ 'abc' | last }} {{ [] | first }}|{{ [] | last }}|{{ x | first }}|",
    "{{ [1, 'a', none] | join(', ') }} {{ 'abc' | join('-') }} {{ [] | join }}| {{ messages | join('/', attribute='role') }} {{ ['a', 'b'] | join }} {{ [1, 2] | join(0) }}",
    "{{ 'abc' | list | tojson }} {{ {'a': 1} | list | tojson }} {{ (1, 2) | list | tojson }} {{ x | list | tojson }} {{ range(3) | list | tojson }}",
    "{{ 5 | string ~ 1 }} {{ none | string }} {{ 1.50 | string }} {{ true | string | length }}", "{{ '42' | int }} {{ ' 7 ' | int }} {{ 'x' | int }} {{ 'x' | int(3) }} {{ 3.99 | int }} {{ '3.7' | int }} {{ none | int }} {{ true | int }} {{ '-5' | int }} {{ '+5' | int }} {{ '1e3' | int }}",
    "{{ '1.5' | float }} {{ 2 | float }} {{ 'x' | float }} {{ 'x' | float(1.5) }} {{ '.5' | float }} {{ '1.' | float }}", "{{ 'aXbXc' | replace('X', '-') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 'ab' | replace('', '.') }} {{ 121 | replace(1, 'x') }} {{ 'é日é' | replace('é', 'e') }}",
    "{{ x | default('d') }} {{ '' | default('d') }}| {{ '' | default('d', true) }} {{ none | default('d') }} {{ x | d }}| {{ false | default('f', boolean=true) }} {{ x.y | default('u') if x is defined else 'n' }}",
    "{{ {'b': 1, 'a': [true, null_name | default(none)], 'c': 1.5} | tojson }}", "{{ 'é\"\\\\\n\t\x01\x7f</script>&\u2028😀' | tojson }} {{ 'é😀' | tojson(ensure_ascii=true) }}",
    "{{ {'a': [1, {'b': []}], 'c': {}} | tojson(indent=2) }}", "{{ [1, [2, 3]] | tojson(indent='\t') }} {{ [] | tojson(indent=4) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}",
    "{{ messages | tojson }}", "{{ messages[1] | tojson(indent=1) }}", "{{ 1.0 | tojson }} {{ 1e30 | tojson }} {{ 'a' | tojson | length }} {{ (1, 'a') | tojson }} {{ ('a<' | safe) | tojson }}",
    "{% for k, v in {'a': 1, 'b': 2} | items %}{{ k }}={{ v }};{% endfor %}{% for k, v in x | items %}n{% endfor %}", "{{ [3, 1, 2] | sort | join }} {{ ['b', 'A', 'c'] | sort | join }} {{ ['b', 'A', 'a'] | sort(case_sensitive=true) | join }} {{ [1, 3, 2] | sort(reverse=true) | join }} {{ messages | sort(attribute='role') | map(attribute='role') | join(',') }}",
    "{{ ['a', 'A', 'b', 'a'] | unique | join }} {{ ['a', 'A'] | unique(case_sensitive=true) | join }} {{ [1, 1.0, 2] | unique | join(' ') }}", "{{ 'abc' | reverse }} {{ [1, 2, 3] | reverse | list | tojson }} {{ 'aé日' | reverse }}",
    "{{ ['a', 'b'] | map('upper') | join }} {{ messages | map(attribute='role') | list | tojson }} {{ messages | map(attribute='zz', default='-') | join }} {{ [['x', 'y'], ['z', 'w']] | map(attribute=1) | join }} {{ ['a,b', 'c'] | map('replace', ',', '+') | join(';') }}",
    "{{ [1, 2, 3, 4] | select('odd') | list | tojson }} {{ [1, 2, 3, 4] | reject('odd') | join }} {{ [0, 1, ''] | select | list | tojson }} {{ [1, 2, 3] | select('gt', 1) | join }} {{ none | select('odd') | list | tojson }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join }} {{ messages | rejectattr('role', 'in', ['user', 'system']) | list | length }} {{ messages | selectattr('content') | list | length }} {{ messages | selectattr('x', 'defined') | list | length }} {{ none | selectattr('a') | list | length }}",
    "{% if messages | selectattr('role', 'equalto', 'zz') %}truthy{% endif %}{% set g = [1, 2] | map('string') %}{{ g | join }}{{ g | join }}|", "{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(width=1, blank=true) }}|{{ 'a\nb\n' | indent('> ') }}|",
    "{{ [1, 5, 3] | max }} {{ [4, 2] | min }} {{ ['b', 'A'] | min }} {{ [1, 2, 3] | sum }} {{ [{'a': 1}, {'a': 5}] | sum(attribute='a') }} {{ [] | max }}| {{ [1.5, 2] | sum(start=1) }}", "{% for k, v in {'b': 1, 'A': 3, 'c': 2} | dictsort %}{{ k }}{{ v }} {% endfor %}{% for k, v in {'b': 1, 'A': 3} | dictsort(by='value', reverse=true) %}{{ k }}{{ v }} {% endfor %}",
    "{{ '<b>' | safe }} {{ ('<b>' | safe) ~ '<i>' }} {{ ('ab' | safe) + 'cd' }} {{ ('a-b' | safe).split('-') | join('<') }}", "{{ 'a' | upper | lower | replace('a', 'b') | upper }}",
    "{{ -3 | abs }} {{ -2.5 | abs }} {{ 'abc' | first | upper }}",
]

METHODS = [
    "{{ ' a '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'xyaxy'.strip('yx') }}|{{ 'éaé'.strip('é') }}|{{ '\\n\\na\\n'.strip('\\n') }}|{{ 'aaa'.strip('a') }}|{{ 'a'.strip(none) }}|",
    "{{ 'a,b,c'.split(',') | tojson }} {{ 'a,b,c'.split(',', 1) | tojson }} {{ ' a  b '.split() | tojson }} {{ ' a b c '.split(none, 1) | tojson }} {{ ''.split(',') | tojson }} {{ ''.split() | tojson }} {{ 'a'.split('</think>')[-1] }} {{ 'x</t>y</t>z'.split('</t>')[-1] }} {{ 'a,b,c'.rsplit(',', 1) | tojson }} {{ 'a b'.split(' ', maxsplit=5) | tojson }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('') }} {{ ''.startswith('a') }}", "{{ 'aBc'.upper() }} {{ 'aBc'.lower() }} {{ \"they're bill's ab1cd\".title() }} {{ 'aBC dE'.capitalize() }}",
    "{{ 'Größe'[:3].upper() }} {{ 'ÉCOLE'.lower() }} {{ 'élan de l\\'été'.title() }} {{ 'éCOLE'.capitalize() }}", "{{ 'aXbX'.replace('X', 'Y') }} {{ 'aaa'.replace('a', 'b', 1) }} {{ 'ab'.replace('', '-') }} {{ 'abc'.replace('abc', '') }}|", "{{ ', '.join(['a', 'b']) }} {{ ''.join([]) }}| {{ '-'.join('abc') }}",
    "{{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'abc'.find('x') }} {{ 'éa'.find('a') }} {{ 'aaa'.count('a') }} {{ 'aaaa'.count('aa') }} {{ 'abc'.count('') }}", "{{ 'a\nb\r\nc\n'.splitlines() | tojson }} {{ 'prefix-a'.removeprefix('prefix-') }} {{ 'a.b'.removesuffix('.b') }} {{ 'a'.removesuffix('') }}",
    "{{ '{}-{}'.format(1, 'a') }} {{ '{{}}{}'.format('x') }}", "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %} {{ {'a': 1}.keys() | list | tojson }} {{ {'a': 1}.values() | list | tojson }} {{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 'd') }}",
    "{{ {'a': 1}.items() | length }} {{ {'a': 1}.keys() | first }} {{ {}.items() | list | tojson }} {{ 'yes' if {}.items() else 'no' }} {{ {'items': 5}['items'] }} {{ {'role': 1}.role }}", "{{ [1, 2, 1].count(1) }} {{ [5, 6].index(6) }} {{ (1, 1).count(1) }}", "{{ messages[0].content.strip() }}|{{ messages[2].content.split()[-1] }}|{{ messages[1].content[:5].upper() }}",
]

STATEMENTS = [
    "{% if 0 %}a{% elif '' %}b{% elif 1 %}c{% else %}d{% endif %}", "{% if x %}a{% else %}b{% endif %}", "{% if [] or {} %}a{% endif %}{% if 'a' in 'cat' %}b{% endif %}", "{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {{ loop.depth }}{{ loop.depth0 }}{% endfor %}", "{% for i in range(6) if i is even %}{{ i }}{{ loop.index }}{{ loop.length }} {% else %}none{% endfor %}", "{% for i in [] %}a{% else %}empty{% endfor %}{% for i in x %}a{% else %}undef{% endfor %}",
    "{% for i in range(9) %}{% if i == 5 %}{% break %}{% endif %}{% if i % 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "{% for i in [1] %}{% break %}{% else %}else{% endfor %}{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}no{% endfor %}{% for i in [1] %}{% continue %}{% else %}all{% endfor %}", "{% for a in [1, 2] %}{% for b in 'xy' %}{{ a }}{{ b }}{{ loop.index }}{{ loop.depth }}{% if b == 'x' and a == 2 %}{% break %}{% endif %}{% endfor %};{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }} {% endfor %}{% for (a, b) in [[5, 6]] %}{{ a }}{{ b }}{% endfor %}", "{% for c in 'aé日' %}{{ c }}.{% endfor %}{% for k in {'x': 1, 'y': 2} %}{{ k }}{% endfor %}", "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}{% for i in (1, 2) if i > 1 %}{{ i }}{% endfor %}",
    "{% set a = 1 %}{% for i in [1, 2] %}{{ a }}{% set a = a + 1 %}{{ a }}{% endfor %}{{ a }}", "{% for i in [1] %}{% set inner = 5 %}{% endfor %}{{ inner }}|{% if true %}{% set b = 7 %}{% endif %}{{ b }}", "{% set ns = namespace(n=0, found=false) %}{% for i in [1, 2, 3] %}{% set ns.n = ns.n + i %}{% if i == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }}{{ ns.found }}{{ ns.nothing }}|",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 3, 4 %}{{ c | tojson }}{% set (d, e) = 'xy' %}{{ d }}{{ e }}", "{% set t %} a {{ 1 + 1 }}\n{% endset %}[{{ t }}]", "{% set t | trim | upper %} a b {% endset %}[{{ t }}]", "{% filter upper %}a {{ 'b' }}{% endfilter %}{% filter replace('a', 'b') | upper %}aa{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}|{% set q = 1 %}{% with q = 2, r = q %}{{ q }}{{ r }}{% endwith %}{{ q }}", "{% macro f(a, b=2, c=a) %}({{ a }},{{ b }},{{ c }}){% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(1, c=9) }}{{ f(b=5, a=4) }}{{ f() }}", "{% set g = 10 %}{% macro f() %}{{ g }}{% endmacro %}{{ f() }}{% set g = 11 %}{{ f() }}",
    "{% macro fact(n) %}{{ n * (fact(n - 1) | int) if n > 1 else 1 }}{% endmacro %}{{ fact(6) }}", "{% macro f(x) %}{% for i in range(x) %}{{ i }}{% endfor %}{% endmacro %}{{ f(3) ~ f(2) }} {{ f(3) | length }} {{ f(0) == '' }}", "{% macro f() %}{% set z = 1 %}{{ z }}{% endmacro %}{{ f() }}{{ z }}|", "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% generation %}a {{ 1 }}{% set w = 2 %}{% endgeneration %}{{ w }}|", "{{ range(3) | list | tojson }} {{ range(1, 7, 2) | join }} {{ range(3, 0, -1) | join }} {{ range(0) | length }} {{ dict(a=1, b=2) | tojson }} {{ dict({'x': 1}, y=2) | tojson }}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %B %b %A %a %y %j %I %p %%') }}", "{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token }}{{ add_generation_prompt }}",
    "{% if strftime_now is defined %}y{% endif %}{% if unk_token is defined %}n{% endif %}{% if bos_token is defined %}y{% endif %}", "{% for m in messages %}{{ loop.index0 }}{{ m['role'] }}:{{ m.content | trim }};{% endfor %}", "{% for m in messages[1:] %}{{ m.role }}{% endfor %}{% for m in messages | reverse %}{{ m.role }}{% endfor %}{% for m in messages[::-1] %}{{ m.role }}{% endfor %}",
    "{% set m = messages[1:] if messages[0].role == 'system' else messages %}{{ m | length }}", "{% for m in messages %}{% if loop.previtem is defined and loop.previtem.role == 'system' %}[{{ m.role }}]{% endif %}{% if loop.nextitem is not defined %}last{% endif %}{% endfor %}", "{% set x = [] %}{% set x = x + [1] %}{% set x = x + [2] %}{{ x | tojson }}", "{% set loop_messages = messages %}{% for m in loop_messages %}{% set content = m.content %}{% if loop.index0 == 0 %}{% set content = 'B' ~ content %}{% endif %}{{ content }}{% endfor %}",
    "{% for i in [1, 2, 3] %}{% if loop.first %}{% set a = i %}{% endif %}{{ a }}|{% endfor %}", "{% set n = namespace() %}{% set n.a = 'b' %}{{ n.a }}{{ n['a'] }}", "{% set n = namespace({'a': 1}, b=2) %}{{ n.a }}{{ n.b }}", "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{{ inner() }}{% endmacro %}{{ outer() }}",
]

ERRORS = [
    "{{ raise_exception('No: ' ~ messages[0].role) }}", "{{ x.y }}", "{{ x['y'] }}", "{{ x + 1 }}", "{{ x() }}", "{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ none + 1 }}", "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1.0 / 0 }}", "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ x < 1 }}", "{{ 1 in 'a' }}", "{{ 'a' in none }}", "{{ 'a' in 5 }}", "{% for i in none %}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% set a, b = 1 %}",
    "{{ none | length }}", "{{ 5 | length }}", "{{ 5 | first }}", "{{ {'a': 1}.b.c }}", "{{ [1, 2][5].x }}", "{{ 'a'.nope() }}", "{{ none.strip() }}", "{{ [1].append(2) }}", "{{ {'a': 1}.update({}) }}", "{{ 'a'.split('') }}", "{{ [[1]] | unique | list }}", "{{ {[1]: 2} }}", "{{ 'a' is nope }}", "{{ 'a' | nope }}", "{{ nope('a') }}", "{% nope %}", "{% if %}a{% endif %}", "{% if true %}a", "{% for i in [1] %}", "{% endif %}", "{{ 1 +", "{{ 'a", "{% set a %}", "{{ }}", "{{ 1 2 }}", "{{ a b }}", "{{ [1, 2 }}", "{{ (1 }}", "{{ {'a' 1} }}", "{# open", "{% raw %} open", "{{ a..b }}", "{{ 'a' | }}", "{{ a is }}", "{{ a if }}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% set x.y = 2 %}", "{% for loop in [1] %}{% endfor %}", "{% break %}", "{% macro f() %}{% break %}{% endmacro %}",
    "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "{{ range(100001) | length }}", "{{ range(1, 2, 0) | list }}", "{{ range('a') }}", "{{ 'a'[::0] }}", "{% set n = 5 %}{{ n[1:] }}", "{{ messages[0][1:] }}", "{% set a = 'a' %}{{ a['b':] }}", "{{ x | int }}", "{{ x | float }}", "{{ none | indent }}", "{{ x | indent }}", "{{ x | tojson }}", "{{ messages.x.y }}", "{{ 'abc' | map('nope') | list }}", "{{ [1] | map('upper', 1) | list }}", "{{ 'x' | trim(1) }}", "{{ ns.x }}{% set ns.x = 1 %}", "{{ a ! b }}", "{{ a = b }}", "{{ 'a' 1 }}", "{{ not }}", "{{ 1 not 2 }}", "{{ f(a=1, 2) }}", "{{ 012 }}", "{{ a[ }}", "{{ a[] }}", "{% if true %}{% else %}{% else %}{% endif %}", "{% for i in [1] %}{% endif %}", "{{ [3, 'a'] | sort }}", "{{ [none, 1] | max }}", "{{ '%' ~ ('a'.join([1])) }}", "{{ messages[0].content.startswith(1) }}", "{{ -'a' }}", "{{ +'a' }}", "{{ {} < {} }}", "{{ (messages | map('upper'))['a']['b'] }}", "{{ [1] | reverse | length }}",
]

LANGUAGE = WHITE_SPACE + LITERALS + OPERATORS + TESTS + FILTERS + METHODS + STATEMENTS + ERRORS
