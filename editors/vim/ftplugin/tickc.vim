" 'C is commented and indented as C is.
if exists('b:did_ftplugin')
  finish
endif
runtime! ftplugin/c.vim
setlocal cindent
