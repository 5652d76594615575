module quaject-bench-ac

go 1.21
