" ESP programs and their separate fast paths.
autocmd BufNewFile,BufRead *.esp,*.fp setfiletype esp
