module filters

go 1.21
