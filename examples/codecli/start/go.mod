module example.org/roman

go 1.26
