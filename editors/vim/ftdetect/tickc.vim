" Programs in 'C.
autocmd BufNewFile,BufRead *.tc setfiletype tickc
