package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// outcome is a whole run: each mutant, what became of it, and the reasons that people gave.
type outcome struct {
	mutants []Mutant
	results map[string]Result
	reasons map[string]string
	whole   bool // no mutant was left out
}

// problems lists what fails the command: survivors without a reason, and reasons that explain nothing.
func (o outcome) problems() (list []string) {
	known := map[string]bool{}
	for _, m := range o.mutants {
		known[m.ID] = true
		r, reason := o.results[m.ID], o.reasons[m.ID]
		switch {
		case !r.Killed && reason == "":
			how := "no test notices it"
			if r.Reached == 0 {
				how = "no test comes to where it would change something"
			} else {
				how = fmt.Sprintf("%s, though %d come to it", how, r.Reached)
			}
			list = append(list, fmt.Sprintf("%s survives: %s\n    %s: %s\n    again: %s", m.ID, how, m.Place, m.What, again(m)))
		case r.Killed && reason != "":
			list = append(list, fmt.Sprintf("%s has a reason for its survival, and is killed by %s of %s: take the reason out", m.ID, r.Test, r.Suite))
		}
	}
	for _, id := range sorted(o.reasons) {
		if o.whole && !known[id] {
			list = append(list, fmt.Sprintf("%s has a reason for its survival, and does not exist (any more): take the reason out", id))
		}
	}
	return list
}

// again is the line that shows one mutant to the suites once more.
func again(m Mutant) string {
	return "scripts/test mutants -only '" + strings.ReplaceAll(regexp.QuoteMeta(m.ID), "'", `'\''`) + "' -v"
}

// table prints kinds by what became of their mutants, and suites by what they killed.
func (o outcome) table(w io.Writer) {
	fmt.Fprintf(w, "| kind | mutants | killed | survived, with a reason | unexplained |\n|---|---|---|---|---|\n")
	var sum [4]int
	row := func(name string, n [4]int) {
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d |\n", name, n[0], n[1], n[2], n[3])
	}
	suites := map[string]int{}
	for _, k := range kinds {
		var n [4]int
		for _, m := range o.mutants {
			if m.Kind != k {
				continue
			}
			n[0]++
			switch r := o.results[m.ID]; {
			case r.Killed:
				n[1]++
				suites[r.Suite]++
			case o.reasons[m.ID] != "":
				n[2]++
			default:
				n[3]++
			}
		}
		for i := range n {
			sum[i] += n[i]
		}
		row(string(k), n)
	}
	row("all", sum)
	fmt.Fprintf(w, "\n| suite | kills |\n|---|---|\n")
	for _, k := range killers {
		fmt.Fprintf(w, "| %s | %d |\n", k.name, suites[k.name])
	}
}

// list prints every mutant and who killed it, or why it survives.
func (o outcome) list(w io.Writer) {
	for _, k := range kinds {
		fmt.Fprintf(w, "\n## %s\n\n| mutant | place | killed by | s |\n|---|---|---|---|\n", k)
		for _, m := range o.mutants {
			if m.Kind != k {
				continue
			}
			r := o.results[m.ID]
			by := r.Suite + ": " + r.Test
			switch {
			case r.Killed:
			case o.reasons[m.ID] != "":
				by = "survives: " + o.reasons[m.ID]
			default:
				by = "**survives, unexplained**"
			}
			cells := []string{"`" + m.ID + "`", m.Place, by, fmt.Sprintf("%.1f", r.Seconds)}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			fmt.Fprintln(w, "| "+strings.Join(cells, " | ")+" |")
		}
	}
}

// chosen are the mutants whose id a pattern matches wholly; all where there is none.
func chosen(all []Mutant, only *regexp.Regexp) []Mutant {
	if only == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(m Mutant) bool { return !only.MatchString(m.ID) })
}
