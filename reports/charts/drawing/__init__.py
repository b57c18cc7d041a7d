"""Drawing code that charts share: style, labels, dots, bars, tiles, SVG output. The charts are in the other folders."""
