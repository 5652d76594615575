" Highlighting of ESP, the language of processes and channels.
if exists('b:current_syntax')
  finish
endif

" The reserved words of the language reference, section 1.
syntax keyword espControl after alt assert break continue else exit for if in match out pri return when while yield
syntax keyword espDeclaration channel const constant extern fn process type var
syntax keyword espType array bool bytes int i8 i16 i32 i64 pid record u8 u16 u32 u64 union
syntax keyword espBoolean false true

" Words only at their place, names elsewhere.
syntax match espModifier /\<external\ze\s\+\(in\|out\|interface\)\>/
syntax match espModifier /\<policy\ze\s\+\(sender\|receiver\|queue\)\>/
syntax match espModifier /\<shared\ze\s*\(;\|=\|policy\>\)/
syntax match espModifier /\<pure\ze\s\+fn\>/
syntax match espModifier /\<idle\ze\s\+\(in\|out\|alt\|pri\)\>/
syntax match espControl /\<until\ze\s*(/
syntax match espType /\<\(time\|duration\)\>/
syntax match espFunction /\<now\>/
syntax match espModifier /\<\(ns\|us\|ms\|s\)\ze\s*)/
syntax match espInclude /^\s*import\ze\s*"/
syntax match espInclude /\<as\ze\s\+\h\w*\s*;/
syntax match espInclude /^\s*part\s\+of\ze\s*"/
syntax match espModifier /^\s*\(pub\(\s\+param\)\?\|param\)\ze\s\+\h/
syntax match espDeclaration /^\s*\(pool\|layout\|fastpath\|model\|proc\)\ze\s\+\h/
syntax match espDeclaration /^\s*pub\s\+\zs\(layout\|proc\)\ze\s\+\h/
syntax match espDeclaration /^\s*memory\ze\s\+\(auto\|manual\)\>/
syntax match espType /\<enum\ze\s*\({\|int\>\|[iu]\(8\|16\|32\|64\)\>\)/
syntax match espFunction /\<\(freeze\|thaw\|free\|link\|unlink\|sizeof\)\ze\s*(/

syntax match espNumber /\<\(0x[0-9A-Fa-f_]\+\|0b[01_]\+\|0o[0-7_]\+\|[1-9][0-9_]*\|0\)\>/
syntax match espOperator /|>\|=>\|->\|\.\.\|<=>/
syntax match espDeclared /\$\h\w*/
syntax match espLabel /#\(\d\+\|\h\w*\)/
syntax match espSelf /@\h*\w*/
syntax match espTag /\<\h\w*\ze\s*|>/
syntax match espEscape contained /\\\([nrt0\\'"]\|x\x\x\)/
syntax match espCharacter /'\([^'\\]\|\\\([nrt0\\'"]\|x\x\x\)\)'/ contains=espEscape
syntax region espString start=/"/ skip=/\\./ end=/"\|$/ contains=espEscape
syntax match espComment /\/\/.*$/ contains=@Spell
syntax region espComment start=/\/\*/ end=/\*\// contains=@Spell

highlight default link espControl Statement
highlight default link espDeclaration StorageClass
highlight default link espType Type
highlight default link espBoolean Boolean
highlight default link espModifier StorageClass
highlight default link espInclude Include
highlight default link espFunction Function
highlight default link espNumber Number
highlight default link espOperator Operator
highlight default link espDeclared Identifier
highlight default link espLabel Label
highlight default link espSelf Special
highlight default link espTag Constant
highlight default link espEscape SpecialChar
highlight default link espCharacter Character
highlight default link espString String
highlight default link espComment Comment

let b:current_syntax = 'esp'
