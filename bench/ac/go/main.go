// Go at the same questions: prints nanoseconds per Gosched, and per goroutine started, yielding once and joined.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"sync"
	"time"
)

func yields(n int) float64 {
	var group sync.WaitGroup
	group.Add(2)
	var spent time.Duration
	go func() {
		runtime.Gosched()
		start := time.Now()
		for i := 0; i < n/2; i++ {
			runtime.Gosched()
		}
		spent = time.Since(start)
		group.Done()
	}()
	go func() {
		for i := 0; i < n/2+1; i++ {
			runtime.Gosched()
		}
		group.Done()
	}()
	group.Wait()
	return float64(spent.Nanoseconds()) / float64(n)
}

func create(n int) float64 {
	start := time.Now()
	for i := 0; i < n; i++ {
		var group sync.WaitGroup
		group.Add(1)
		go func() {
			runtime.Gosched()
			group.Done()
		}()
		group.Wait()
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func median(f func(int) float64) float64 {
	var all []float64
	for i := 0; i < 31; i++ {
		all = append(all, f(20000))
	}
	sort.Float64s(all)
	return all[len(all)/2]
}

func main() {
	runtime.GOMAXPROCS(1)
	fmt.Println(median(yields), median(create))
}
