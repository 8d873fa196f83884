// judge FILE GOT: a line `ID MODEL WORST FLAGS..` for every {"Id", "Got"} of GOT; rope FILE LAYOUT: RoPE of this program.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"judge/vectors"
)

func rope(c vectors.Case, layout string) []float64 {
	dim, base, x := int(c.Params["dim"].(float64)), c.Params["base"].(float64), c.Tensors["x"]
	y, width, step, between := append([]float64{}, x.Data...), x.Shape[len(x.Shape)-1], 2, 1
	if layout == "half" {
		step, between = 1, dim/2
	}
	for row := 0; row*width < len(y); row++ {
		for t := 0; t < dim/2; t++ {
			angle := c.Tensors["positions"].Data[row] * math.Pow(base, -2*float64(t)/float64(dim))
			first := row*width + step*t
			a, b := y[first], y[first+between]
			y[first] = a*math.Cos(angle) - b*math.Sin(angle)
			y[first+between] = a*math.Sin(angle) + b*math.Cos(angle)
		}
	}
	return y
}

func say(file vectors.File, c vectors.Case, got []float64) {
	for _, model := range c.Models {
		words := append([]string{c.Id, model, fmt.Sprint(vectors.Worst(file, c, got, model))}, vectors.Named(c, got)...)
		fmt.Println(strings.Join(words, " "))
	}
}

func main() {
	file, err := vectors.Load(os.Args[2])
	if err != nil {
		panic(err)
	}
	if os.Args[1] == "rope" {
		for _, c := range file.Cases {
			if c.Id == "rope/half/d8-b1e4/tiny" {
				say(file, c, rope(c, os.Args[3]))
			}
		}
		return
	}
	results, known := []struct {
		Id  string
		Got []string
	}{}, map[string]vectors.Case{}
	for _, c := range file.Cases {
		known[c.Id] = c
	}
	text, _ := os.ReadFile(os.Args[3])
	if err := json.Unmarshal(text, &results); err != nil {
		panic(err)
	}
	for _, result := range results {
		got := make([]float64, len(result.Got))
		for i, word := range result.Got {
			got[i], _ = strconv.ParseFloat(word, 64)
		}
		say(file, known[result.Id], got)
	}
}
