// SPDX-License-Identifier: Apache-2.0

// Simulate reads a price and a discount for those who come back, and says what a
// shop earns with them, and what it would earn a step further in each direction. Its
// customers are made up, and the same each time: money is counted in cents, and
// nothing but what it reads changes the result.
//
//	echo '{"price": 500, "discount": 0}' | go run ./examples/optimize
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
)

// shop is what can be tuned.
type shop struct {
	Price    int `json:"price"`    // in cents
	Discount int `json:"discount"` // in per cent, for customers who come back
}

// trial is what came of one shop.
type trial struct {
	shop
	Profit int `json:"profit"` // in whole currency
	Sales  int `json:"sales"`
}

// report is what simulate prints.
type report struct {
	trial
	Around []trial `json:"around"`
}

// customer is somebody who buys if it does not cost more than it is worth to
// him, and comes back once if what he saves is worth the way.
type customer struct {
	worth int // cents
	way   int // cents
}

const (
	unitCost  = 400 // cents
	customers = 20_000
	step      = 150 // cents
)

func main() {
	var at shop
	if err := json.NewDecoder(os.Stdin).Decode(&at); err != nil {
		fmt.Fprintln(os.Stderr, "simulate: read the parameters:", err)
		os.Exit(2)
	}
	if at.Price <= 0 || at.Discount < 0 || at.Discount > 90 {
		fmt.Fprintln(os.Stderr, "simulate: the price is above 0, the discount from 0 to 90")
		os.Exit(2)
	}
	people := crowd()
	out := report{trial: at.open(people)}
	for _, next := range at.around() {
		out.Around = append(out.Around, next.open(people))
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// crowd makes the customers.
func crowd() []customer {
	r := rand.New(rand.NewPCG(1, 2))
	people := make([]customer, customers)
	for i := range people {
		for range 4 { // the sum of several is most often in the middle
			people[i].worth += r.IntN(600)
		}
		people[i].way = r.IntN(400)
	}
	return people
}

// open sells to everybody.
func (s shop) open(people []customer) trial {
	t := trial{shop: s}
	cents := 0
	saved := s.Price * s.Discount / 100
	for _, c := range people {
		if c.worth < s.Price {
			continue
		}
		t.Sales++
		cents += s.Price - unitCost
		if saved >= c.way {
			t.Sales++
			cents += s.Price - saved - unitCost
		}
	}
	t.Profit = cents / 100
	return t
}

// around are the shops a step further, in an order that is always the same.
func (s shop) around() []shop {
	var all []shop
	for _, d := range []shop{{step, 0}, {0, 5}, {step, 5}, {-step, 0}, {0, -5}, {step, -5}, {-step, 5}, {-step, -5}} {
		next := shop{s.Price + d.Price, s.Discount + d.Discount}
		if next.Price > 0 && next.Discount >= 0 && next.Discount <= 90 {
			all = append(all, next)
		}
	}
	return all
}
