module throng.example/stock

go 1.21
