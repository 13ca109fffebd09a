"""Small charts as SVG: pure functions of numbers, coloured by the page's style sheet."""
