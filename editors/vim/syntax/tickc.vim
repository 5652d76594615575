" Highlighting of 'C, C with run-time code generation.
if exists('b:current_syntax')
  finish
endif
" A block of code may be an argument.
let c_no_curly_error = 1
runtime! syntax/c.vim
unlet! b:current_syntax

syntax keyword tickcType cspec vspec
syntax match tickcOperator /[`$@]/ containedin=cParen,cBlock,cBracket,cMulti
syntax match tickcSpecial /\<\(compile\|free_code\|local\|param\|label\|push_init\|push\|jump\|apply\|self\)\ze\s*(/ containedin=cParen,cBlock,cBracket,cMulti

highlight default link tickcType StorageClass
highlight default link tickcOperator PreProc
highlight default link tickcSpecial Function

let b:current_syntax = 'tickc'
