"""The numbers behind the color shifts that the paper shows."""

from __future__ import annotations

# The mean colors of levels 5 to 250 that the paper's authors printed in the notebook of their
# release, over the inputs and over the outputs of eight systems, and the color shifts that the
# paper and its page show for them.
INPUTS = (130.19645540165164, 122.15157809824544, 113.10246908521974)
PUBLISHED = {
    "Nano Banana": ((128.8077440951207, 121.62224288530028, 113.30290608895706), 1.50),
    "Bagel": ((129.7416086726352, 124.88083116909183, 112.35250602783229), 2.87),
    "Anole": ((128.71000201106853, 121.90663525468243, 115.90742617540042), 3.18),
    "Flux Kontext": ((126.83092896702428, 120.58596165155554, 111.25209817377942), 4.15),
    "Bagel-Think": ((130.04168497089918, 125.40240884087645, 110.29793663547314), 4.30),
    "Gemini 2.0 Flash": ((130.6032150967758, 125.33250353180529, 116.92085934814034), 4.99),
    "LLM+Diffusion": ((122.2193817758066, 116.26410273544627, 105.57054995566492), 12.45),
    "4o Image Gen": ((121.31480320496527, 107.79034113129879, 91.08195396266762), 27.75),
}
