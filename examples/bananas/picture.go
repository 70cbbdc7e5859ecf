// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"math/rand/v2"
)

// A picture has room for a banana in each of its squares, so that none touches
// another.
const (
	columns, rows = 4, 3
	square        = 80 // pixels
	room          = columns * rows
)

// paint draws n bananas on a table and returns the picture as a PNG. The same
// random numbers give the same picture. It fails if there is no room for them.
func paint(rng *rand.Rand, n int) ([]byte, error) {
	if n < 0 || n > room {
		return nil, fmt.Errorf("there is room for 0 to %d bananas, not for %d", room, n)
	}
	img := image.NewRGBA(image.Rect(0, 0, columns*square, rows*square))
	for y := range img.Rect.Max.Y {
		wood := color.RGBA{uint8(110 + 12*math.Sin(float64(y)/5)), 70, 48, 255}
		draw.Draw(img, image.Rect(0, y, img.Rect.Max.X, y+1), image.NewUniform(wood), image.Point{}, draw.Src)
	}
	for _, place := range rng.Perm(room)[:n] {
		b := banana{
			x:     place%columns*square + square/2 + rng.IntN(9) - 4,
			y:     place/columns*square + square/2 + rng.IntN(9) - 4,
			angle: rng.Float64() * 2 * math.Pi,
		}
		b.draw(img)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img); err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return out.Bytes(), nil
}

// banana is a place and a direction.
type banana struct {
	x, y  int
	angle float64
}

const radius = 30

var (
	yellow = color.RGBA{250, 214, 48, 255}
	brown  = color.RGBA{74, 48, 18, 255}
	shadow = color.RGBA{52, 30, 20, 255}
)

// draw paints the shadow, the banana over it, and its two ends.
func (b banana) draw(img *image.RGBA) {
	below := b
	below.x, below.y = b.x+3, b.y+4
	below.fill(img, shadow, below.skin)
	b.fill(img, yellow, b.skin)
	b.fill(img, brown, b.tip)
}

// fill colours the pixels of a shape, which is asked with the distance from the
// banana's middle.
func (b banana) fill(img *image.RGBA, c color.RGBA, shape func(dx, dy float64) bool) {
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			if shape(float64(dx), float64(dy)) {
				img.SetRGBA(b.x+dx, b.y+dy, c)
			}
		}
	}
}

// skin is a disc without a second one beside it.
func (b banana) skin(dx, dy float64) bool {
	cx, cy := 18*math.Cos(b.angle), 18*math.Sin(b.angle)
	return math.Hypot(dx, dy) <= radius && math.Hypot(dx-cx, dy-cy) > radius
}

// tip is where the edges of the two discs nearly meet.
func (b banana) tip(dx, dy float64) bool {
	return b.skin(dx, dy) && math.Abs(dy*math.Cos(b.angle)-dx*math.Sin(b.angle)) > 26
}
