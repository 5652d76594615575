" How ESP is commented and indented.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal comments=://,sr:/*,mb:*,ex:*/
setlocal commentstring=//\ %s
setlocal cindent shiftwidth=2 expandtab
let b:undo_ftplugin = 'setlocal comments< commentstring< cindent< shiftwidth< expandtab<'
