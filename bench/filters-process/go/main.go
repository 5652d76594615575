// The filters as goroutines over unbuffered channels. Arguments: program, times.
// Prints nanoseconds per input byte, then the result.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	end    = -1
	length = 10000
	window = 65536
)

var key = [8]int{0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88}

func data() []byte {
	state, last := uint32(1), byte(0)
	all := make([]byte, 0, length)
	for len(all) < length {
		state = state*1664525 + 1013904223
		b := byte(1 + (state>>24)%15)
		if b != last {
			last = b
			all = append(all, b)
		}
	}
	return all
}

func read(all []byte, times int, to chan<- int) {
	for i := 0; i < times; i++ {
		for _, b := range all {
			to <- int(b)
		}
	}
	to <- end
}

func evener(from <-chan int, to chan<- int) {
	odd := false
	for b := <-from; b != end; b = <-from {
		to <- b
		odd = !odd
	}
	if odd {
		to <- 0
	}
	to <- end
}

func swap(from <-chan int, to chan<- int) {
	for first := <-from; first != end; first = <-from {
		second := <-from
		if second == end {
			to <- first
			break
		}
		to <- second
		to <- first
	}
	to <- end
}

func crc32(from <-chan int, to chan<- int) {
	var table [256]uint32
	for i := range table {
		rest := uint32(i)
		for bit := 0; bit < 8; bit++ {
			if rest&1 != 0 {
				rest = rest>>1 ^ 0xedb88320
			} else {
				rest >>= 1
			}
		}
		table[i] = rest
	}
	crc := uint32(0xffffffff)
	for b := <-from; b != end; b = <-from {
		crc = table[(crc^uint32(b))&0xff] ^ crc>>8
		to <- b
	}
	crc = ^crc
	for i := 0; i < 4; i++ {
		to <- int(byte(crc >> (8 * i)))
	}
	to <- end
}

func rle(from <-chan int, to chan<- int) {
	count, last := 0, 0
	for {
		b := <-from
		if count > 0 && (b != last || count == 255) {
			to <- count
			to <- last
			count = 0
		}
		if b == end {
			break
		}
		last = b
		count++
	}
	to <- end
}

func pes(from <-chan int, to chan<- int) {
	at := 0
	for b := <-from; b != end; b = <-from {
		to <- b ^ key[at]
		at = (at + 1) % 8
	}
	to <- end
}

func rld(from <-chan int, to chan<- int) {
	for count := <-from; count != end; count = <-from {
		value := <-from
		if value == end {
			break
		}
		for i := 0; i < count; i++ {
			to <- value
		}
	}
	to <- end
}

func main() {
	program, _ := strconv.Atoi(os.Args[1])
	times, _ := strconv.Atoi(os.Args[2])
	stages := [][]func(<-chan int, chan<- int){
		{evener, swap, crc32},
		{rle, swap, pes},
		{rle, swap, pes, pes, swap, rld},
		{crc32, swap, pes, pes, swap, rld},
	}[program-1]
	all := data()
	written := make([]byte, window)
	count := uint32(0)
	start := time.Now()
	from := make(chan int)
	go read(all, times, from)
	for _, stage := range stages {
		to := make(chan int)
		go stage(from, to)
		from = to
	}
	for b := <-from; b != end; b = <-from {
		written[count%window] = byte(b)
		count++
	}
	elapsed := time.Since(start)
	hash := uint32(2166136261)
	for _, b := range written {
		hash = (hash ^ uint32(b)) * 16777619
	}
	fmt.Printf("%.3f\n%d %08x\n", float64(elapsed.Nanoseconds())/float64(times*length), count, hash)
}
