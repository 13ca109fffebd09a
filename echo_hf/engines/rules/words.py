"""The words about pictures, and about models, that plain rules look for.

All are folded (see `folding`). A word that is common in other talk is left out, or stands in a set
that never decides alone. Chinese and Japanese, which write no spaces, stand in `han_words`; words
of verdicts in `verdict_words`.
"""

from __future__ import annotations


def words(**by_language: str) -> frozenset[str]:
    """One set of the words of several languages.

    Example:
        >>> sorted(words(en="photo image", es="foto"))
        ['foto', 'image', 'photo']
    """
    return frozenset(word for several in by_language.values() for word in several.split())


# A picture, or a kind of picture.
PICTURE = words(
    en="""image images img imgs picture pictures pic pics photo photos photograph photographs selfie
    selfies portrait portraits poster posters logo logos sticker stickers cartoon cartoons anime
    manga comic comics illustration illustrations illustrated drawing drawings sketch sketches
    painting paintings watercolor watercolour render renders rendering figurine figurines avatar
    avatars wallpaper wallpapers thumbnail thumbnails meme memes infographic infographics collage
    mockup ghibli pixar lego chibi funko polaroid claymation isometric photorealistic artwork
    hyperrealistic cinematic headshot headshots silhouette voxel minifigure diorama bobblehead
    doodle caricature caricatures coloring colouring png storyboard photoshoot""",
    es="""imagen imágenes imagenes foto fotos fotografía retrato retratos cartel pegatina pegatinas
    dibujo dibujos ilustración ilustraciones pintura acuarela caricatura""",
    fr="""photographie photographies affiche affiches autocollant autocollants dessin dessins
    aquarelle peinture""",
    de="""bild bilder bildes bildern plakat aufkleber zeichnung zeichnungen gemälde aquarell
    karikatur porträt illustrationen""",
    pt="""imagem imagens desenho desenhos ilustração figurinha figurinhas adesivo adesivos cartaz
    fotografia aquarela""",
    it="immagine immagini disegno disegni ritratto ritratti illustrazione acquerello vignetta",
)
# What a picture looks like, or shows.
LOOK = words(
    en="""style styles styled stylized background foreground scene lighting light realistic texture
    pixel aspect ratio art canvas cover banner icon icons badge keychain figure toy miniature emoji
    vintage retro composition pastel neon bokeh lens closeup shadows palette typography font
    monochrome minimalist surreal steampunk cyberpunk futuristic landscape sculpture mural 3d
    transparent glossy matte felt knitted crochet origami card packaging hair sky sunset octane hdr
    4k 8k 35mm vector flat shot view angle glowing color colors colour colours""",
    es="estilo fondo realista escena luz textura personaje marioneta atardecer",
    fr="fond décor lumière arrière scène réaliste coucher personnage",
    de="stil hintergrund szene licht realistisch textur sonnenuntergang farben",
    pt="fundo cena pôr",
    it="stile sfondo scena luce realistico tramonto personaggio",
)
# To make or change something, in the forms that people use of themselves and of a model.
MAKING = words(
    en="""make makes making made create creates creating created generate generates generating
    generated draw draws drawing drew drawn design designed turn turns turning turned transform
    transforms transformed convert converts converted render rendered edit edits editing edited
    redraw redrew recreate recreated restyle restyled reimagine reimagined paint painted
    cartoonify illustrate illustrated colorize colorized colourise restore restored photoshop
    produce produced""",
    es="""crea crear creé creado creada creando genera generar generé generado generada generando
    haz hacer hice hecho hecha dibuja dibujar dibujó dibujado convierte convertir convirtió
    convertí convertido transforma transformar transformó transformado diseña diseñar editar
    editado""",
    fr="""crée créer créé créée génère générer généré générée fait faire dessine dessiner dessiné
    transforme transformer transformé convertis modifier modifié imaginé""",
    de="""erstelle erstellen erstellt erzeugen erzeugt generieren generiert generierte mach machen
    gemacht zeichne zeichnen gezeichnet verwandeln verwandelt gestaltet bearbeiten bearbeitet""",
    pt="""crie criar criei criado criada gere gerar gerei gerado gerada faça fazer fiz feito feita
    desenhe desenhar desenhou transformei transformou editei""",
    it="""creare creato creata generare generato generata fatto fatta disegnare disegnato
    trasformare trasformato modificato""",
)
# First word of an instruction that, beside a word about pictures, can hardly mean anything else.
ORDER = words(
    en="""create generate draw redraw render transform convert turn design paint illustrate sketch
    make restyle reimagine recreate retexture colorize colourise cartoonify animate depict
    visualize visualise photograph edit""",
    es="""crea crear créame creame genera generar dibuja dibujar dibújame convierte convierta
    transforma diseña pinta haz hazme ilustra recrea""",
    fr="""crée créez créer génère générez générer dessine dessinez transforme transformez convertis
    convertissez illustre imagine imaginez""",
    de="""erstelle erstell erzeuge generiere zeichne verwandle wandle male gestalte entwirf mach
    mache""",
    pt="crie gere gera desenhe desenha converta transforme pinte faça faz ilustre recrie",
    it="crea genera disegna disegnami trasforma converti dipingi progetta illustra fai",
)
# First word of an instruction, but common elsewhere.
WEAK_ORDER = words(
    en="""add remove replace change put place show give use take swap combine merge blend integrate
    apply keep restore upscale enlarge imagine produce craft build colour color crop fix set
    write""",
    es="agrega añade quita cambia pon reemplaza muestra usa elimina",
    fr="ajoute remplace change mets enlève montre utilise supprime",
    de="füge ersetze entferne ändere zeig zeige stelle setze nimm",
    pt="adicione remova mude coloque mostre troque tire",
    it="aggiungi rimuovi cambia metti immagina mostra sostituisci",
)
# May stand before an order.
OPENERS = words(
    en="please pls plz now then next okay ok hey also just can could would you chatgpt gpt",
    es="ahora luego por favor puedes podrías",
    fr="maintenant peux tu pouvez vous",
    de="bitte jetzt kannst du",
    pt="agora você pode poderia",
    it="adesso puoi per favore",
)
# Models in general. "AI", "IA", "KI" are looked for apart: in small letters they are other words.
ARTIFICIAL = words(
    en="""aiart genai gpt gpts llm llms chatbot chatbots neural diffusion artificial aigenerated
    generativeai imagegen""",
    es="inteligencia",
    fr="artificielle",
    de="künstliche künstlicher",
)
# Means a model only beside the name of one's maker.
MODEL = words(en="model models", es="modelo modelos", fr="modèle modèles", de="modell modelle")
ABBREVIATIONS = words(en="ai", es="ia", de="ki")
# One word, mostly a hashtag, that says pictures are generated.
GENERATION = words(
    en="""imagegen txt2img img2img text2image texttoimage aiart aiartwork aigeneratedart
    aiartcommunity aiimage aiimages aigenerated promptshare gptimage 4oimage 4oimagegen
    imagegeneration ghiblified ghiblify ghiblistyle""",
    de="bildgenerator bildgenerators bildgenerierung bilderzeugung kibild kibilder kikunst",
)
# Without one of these there is no phrase that says it either.
GENERATION_HEADS = words(
    en="image images photo photos picture pictures art text gpt ai",
    es="imagen imágenes imagenes ia",
    de="bild bilder ki",
    pt="imagem imagens",
    it="immagine immagini",
)
PROMPT = words(en="prompt prompts promt promts prompting")
# Other words for a prompt; only before a colon at the start of a line.
PROMPT_BY_COLON = words(
    en="instruction variation tweak",
    es="instrucción instrucciones indicación variante",
    fr="consigne",
    de="anweisung eingabe",
    pt="comando instrução",
    it="istruzione",
)
# Uses of a language model that have nothing to do with pictures.
TEXT_USE = words(
    en="""essay essays code coding coder python javascript sql homework email emails summarize
    summarise summary summaries translate translation therapist therapy resume cv lawyer legal
    spreadsheet excel regex debug refactor thesis paper papers exam exams math algebra poem poems
    recipe recipes benchmark benchmarks context tokens token reasoning voice latency pricing api
    stock stocks article blog newsletter marketing seo""",
    es="""ensayo código tarea deberes correo resumen traducir traducción tesis examen poema
    receta""",
    fr="dissertation devoirs courriel résumé traduire traduction thèse poème recette",
    de="""aufsatz hausaufgaben zusammenfassung zusammenfassen übersetzen übersetzung gedicht
    rezept""",
    pt="redação dever resumo traduzir tradução poesia receita",
    it="tema codice compiti riassunto tradurre tesi ricetta",
)
# To look at a picture that exists.
LOOKING = words(
    en="""analyze analyse analyzes analyzed analysed read reads reading recognize recognise
    recognizes identify identifies identified describe describes described understand understands
    ocr detect recognition vision geoguess locate""",
    es="analiza analizar leer lee reconoce",
    fr="analyser lire reconnaît",
    de="analysieren erkennt erkennen lesen",
    pt="analisar ler reconhece",
    it="analizzare leggere riconosce",
)
