package hashattack_test

import (
	"fmt"

	"spamgate/internal/hashattack"
)

// Three names that Search finds for example.com make it a false positive.
func ExampleJudge() {
	r, err := hashattack.Judge("example.com", []string{
		"whvr7avangwceuzas9uylcf2eye10a8u1cs9bf47zpnr0mf1bvmccczo864vlu.com",
		"yinrdyxaf80eet3atej37s77qsz002ho3ju43yj24ikc5bhg3agrxxol5300f2.com",
		"vouxw3h679q16887zc9jl2b3sn30eirs8ntdyeslggrpncnk7k25dkdyj702eg.com",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range r.Names {
		fmt.Println(r.HashesOf(name))
	}
	fmt.Println("maybe", r.Target, r.MayContain)
	// Output:
	// [PJW ELF BP FNV AP]
	// [JS BKDR SDBM BP]
	// [RS DJB DEK BP]
	// maybe example.com true
}
