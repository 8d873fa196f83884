// Package vectors: loader and comparator of the golden vectors in Go; CC0 1.0. Worst at most 1 passes; Named says which mistake.
package vectors

import (
	"encoding/json"
	"math"
	"os"
	"sort"
)

type Tensor struct {
	Shape []int
	Data  []float64
}
type Case struct {
	Id, Op, Gauge, Status, Comment string
	Models                         []string
	Params                         map[string]any
	Tensors, Stages                map[string]Tensor
	Expected                       Tensor
	Cond, Fingerprints             map[string][]float64 // no cond: the result must be equal
	Growth, Rms                    map[string]float64   // of a model
	Ignore                         []int
}
type Model struct{ C_phase, C_amp, C_out, Floor float64 }
type File struct {
	Schema string
	Models map[string]Model
	Cases  []Case
}

func Load(path string) (file File, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err == nil && file.Schema != "posref-vectors-3" {
		err = &os.PathError{Op: "schema " + file.Schema + " of", Path: path, Err: os.ErrInvalid}
	}
	return file, err
}

func (c Case) ignored(i int) bool { return c.Ignore != nil && c.Ignore[i] == 1 }

func (c Case) differences(got []float64) []float64 { // 0 where it is ignored; nil of another length, NaN or infinity
	if len(got) != len(c.Expected.Data) {
		return nil
	}
	d := make([]float64, len(got))
	for i := range got {
		if !c.ignored(i) {
			d[i] = got[i] - c.Expected.Data[i]
		}
		if math.IsNaN(d[i]) || math.IsInf(d[i], 0) {
			return nil
		}
	}
	return d
}

func (c Case) first(i int) int { // what the i-th is compared with: of its row where a constant may be added to rows
	if c.Gauge != "row_constant" {
		return i
	}
	return i - i%c.Expected.Shape[len(c.Expected.Shape)-1]
}

func (c Case) allowed(m Model, i int) float64 {
	if c.Cond == nil {
		return 0
	}
	cond := func(name string, absent float64) float64 {
		if values, found := c.Cond[name]; found {
			return values[i]
		}
		return absent
	}
	out := cond("out", math.Abs(c.Expected.Data[i]))
	return 1.03125*(m.C_phase*cond("phase", 0)+m.C_amp*cond("amp", 0)+m.C_out*out) + m.Floor
}

func Worst(file File, c Case, got []float64, model string) float64 {
	m, d, most, squares, count := file.Models[model], c.differences(got), 0.0, 0.0, 0.0
	if d == nil {
		return math.Inf(1)
	}
	m.C_phase *= math.Max(1, c.Growth[model]) // 1 where there is none
	for i := range d {
		if ratio := math.Abs(d[i]) / c.allowed(m, i); c.Gauge != "row_constant" && d[i] != 0 {
			most, squares = math.Max(most, ratio), squares+ratio*ratio
		}
		if !c.ignored(i) {
			count++
		}
		for j := c.first(i); j < i; j++ {
			if !c.ignored(i) && !c.ignored(j) && d[i] != d[j] {
				most = math.Max(most, math.Abs(d[i]-d[j])/(c.allowed(m, i)+c.allowed(m, j)))
			}
		}
	}
	if r := c.Rms[model]; r > 0 && count > 0 {
		most = math.Max(most, math.Sqrt(squares/count)/r)
	}
	return most
}

func Named(c Case, got []float64) (found []string) {
	d, whole, sums := c.differences(got), 0.0, [4]float64{}
	for t, tag := range []int{1, 2, 4, 6} {
		for i, x := range d {
			if c.Gauge == "row_constant" && !c.ignored(i) {
				x -= d[c.first(i)]
			}
			sums[t] += x * (float64((7*i*i+31*i+17*tag)%251) - 125) / 64
		}
		whole += math.Abs(sums[t])
	}
	for flag, known := range c.Fingerprints {
		rest := 0.0
		for t := range known {
			rest += math.Abs(sums[t] - known[t])
		}
		if rest < whole/64 {
			found = append(found, flag)
		}
	}
	sort.Strings(found)
	return found
}
