// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
)

// smallest is how many pixels are more than a speck.
const smallest = 200

// count looks at a PNG and says how many bananas are in it: yellow areas of
// some size, each of whose pixels touches another one of it at a side.
func count(picture []byte) (int, error) {
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return 0, fmt.Errorf("decode the picture: %w", err)
	}
	img := image.NewRGBA(decoded.Bounds())
	draw.Draw(img, img.Rect, decoded, img.Rect.Min, draw.Src)
	n := 0
	for y := img.Rect.Min.Y; y < img.Rect.Max.Y; y++ {
		for x := img.Rect.Min.X; x < img.Rect.Max.X; x++ {
			if isYellow(img.RGBAAt(x, y)) && erase(img, image.Pt(x, y)) >= smallest {
				n++
			}
		}
	}
	return n, nil
}

// erase makes the yellow pixels black that hang together with one, and counts
// them.
func erase(img *image.RGBA, from image.Point) (pixels int) {
	todo := []image.Point{from}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !isYellow(img.RGBAAt(p.X, p.Y)) { // as nothing outside is
			continue
		}
		img.SetRGBA(p.X, p.Y, color.RGBA{A: 255})
		pixels++
		todo = append(todo, p.Add(image.Pt(1, 0)), p.Add(image.Pt(-1, 0)), p.Add(image.Pt(0, 1)),
			p.Add(image.Pt(0, -1)))
	}
	return pixels
}

func isYellow(c color.RGBA) bool { return c.R > 0xb0 && c.G > 0x90 && c.B < 0x80 }
